"""Arrays that are read on demand, from one file or several; safetensors files."""

import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.json_file import read_json

Reader = Callable[[], np.ndarray]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_GIT_LFS = b"version https://git-lfs"


class LazyArrays(Mapping[str, np.ndarray]):
    """Maps names to arrays, which are read on demand and not kept.

    Args:
        readers: dict of name -> function that reads the array.
    """

    def __init__(self, readers: Mapping[str, Reader]):
        self._readers = dict(readers)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._readers[name]()

    def __contains__(self, name: object) -> bool:
        return name in self._readers

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


def index_of(path: Path) -> Path:
    """Returns the path of the index of a checkpoint in several files."""
    return path.with_name(f"{path.name}.index.json")


def read_shards(path: Path, read: Callable[[Path], Mapping[str, Reader]]) -> LazyArrays:
    """Opens the arrays of a file, or, without it, of all files listed in its index.

    Args:
        path: path of the file. Its index is named as in Hugging Face, such as
            `model.safetensors.index.json`.
        read: function of a path that returns functions that read the arrays in a
            file.
    Raises:
        OSError: if a file cannot be read.
        ValueError: if the index is damaged, or does not match the arrays of its files.
    """
    index = index_of(path)
    if path.exists() or not index.exists():
        return LazyArrays(read(path))
    content = read_json(index)
    files = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(files, dict) or any(type(n) is not str for n in files.values()):
        raise ValueError(f"{index} is not the index of a checkpoint in several files.")
    for name in files.values():
        if Path(name).name != name:
            raise ValueError(f"{index} has a file in another folder: {name!r:.200}")
    arrays: dict[str, Reader] = {}
    for name in sorted(set(files.values())):
        arrays |= read(path.with_name(name))
    unmatched = sorted(arrays.keys() ^ files.keys())
    if unmatched:
        name = unmatched[0]
        lacking = "index" if name in arrays else "files"
        raise ValueError(
            f"{index}: the {lacking} of its checkpoint lack {name[:200]!r}."
        )
    return LazyArrays(arrays)


def refuse_git_lfs_pointer(path: Path) -> None:
    """Refuses a pointer of Git LFS, whose file was not fetched.

    Args:
        path: path of a file.
    Raises:
        OSError: if it cannot be read.
        ValueError: if it is a pointer of Git LFS.
    """
    with open(path, "rb") as file:
        if file.read(len(_GIT_LFS)) == _GIT_LFS:
            raise ValueError(
                f"{path} is a pointer of Git LFS in the place of the file; fetch the "
                "file with `git lfs pull`."
            )


def read_safetensors(path: PathLike) -> LazyArrays:
    """Opens the arrays of a safetensors file, or of all files listed in an index.

    Only the header is read and checked at first; each array is read on demand. bfloat16
    becomes float32; other types are kept.

    Args:
        path: path of `model.safetensors`. If it does not exist, its index
            `model.safetensors.index.json` is read.
    Returns:
        Mapping of name -> array.
    Raises:
        OSError: if a file cannot be read.
        ValueError: if a file is truncated or damaged, contains an unknown type, or is
            not a safetensors file.
    """
    return read_shards(Path(path), _read_safetensors)


def _read_safetensors(path):
    refuse_git_lfs_pointer(path)
    try:
        file = safe_open(path, framework="numpy")
    except SafetensorError as error:
        raise ValueError(
            f"{path} is not a safetensors file, or is damaged: {error}."
        ) from error
    return {name: functools.partial(_read, path, file, name) for name in file.keys()}


def _read(path, file, name):
    try:
        array = file.get_tensor(name)
    except Exception as error:  # such as a type or a shape that NumPy lacks
        raise ValueError(f"{path}: {name} cannot be read: {error}.") from error
    return array.astype("float32") if array.dtype == BFLOAT16 else array
