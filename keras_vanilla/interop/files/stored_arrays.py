"""Arrays that are read on demand."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_vanilla._checks import LARGEST_INT32
from keras_vanilla.interop.files.json_file import read_json

Reader = Callable[[], np.ndarray]

BFLOAT16 = "bfloat16"  # not a type of NumPy
_GIT_LFS = b"version https://git-lfs"
_MOST_DIMENSIONS = 32  # of NumPy 1.26
_LARGEST_ARRAY = 2**56  # values; NumPy also limits the shapes of empty arrays


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """The location of an array in a file.

    The caller must check that the file has at least `offset + nbytes` bytes.

    Args:
        path: path of the file.
        offset: int. Position of the first value in the file, in bytes.
        dtype: str. NumPy's name with the byte order of the file, such as "<f4", or
            "<bfloat16".
        shape: tuple of ints.
        strides: tuple of ints, in values; None means contiguous rows.
    """

    path: Path
    offset: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    @property
    def nbytes(self) -> int:
        """Number of bytes from the first value to the end of the last."""
        return value_span(self.shape, self.strides) * item_size(self.dtype)

    def read(self) -> np.ndarray:
        """Reads the array; bfloat16 becomes float32 with the same values.

        Raises:
            ValueError: if the file has become shorter since it was opened.
        """
        dtype = _in_numpy(self.dtype)
        count = value_span(self.shape, self.strides)
        values = np.fromfile(self.path, dtype, count, offset=self.offset)
        if len(values) != count:
            raise ValueError(f"{self.path} was cut off while it was read.")
        values = values.astype(dtype.newbyteorder("="), copy=False)
        if self.dtype.endswith(BFLOAT16):  # the upper half of a float32
            values = np.left_shift(values, 16, dtype=np.uint32).view(np.float32)
        if self.strides is None:
            return values.reshape(self.shape)
        strides = [step * values.itemsize for step in self.strides]
        view = np.lib.stride_tricks.as_strided(values, self.shape, strides)
        return np.asarray(view, order="C")


class LazyArrays(Mapping[str, np.ndarray]):
    """Maps names to arrays, which are read on demand and not kept.

    Files are read instead of memory-mapped. A file that is truncated meanwhile then
    raises an error instead of ending the process, and arrays that are no longer used do
    not count as memory of the process.

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


def read_shards(
    path: Path, read: Callable[[Path], Mapping[str, StoredArray]]
) -> LazyArrays:
    """Opens the arrays of a file, or, without it, of all files listed in its index.

    Args:
        path: path of the file. Its index is named as in Hugging Face, such as
            `model.safetensors.index.json`.
        read: function of a path that returns the locations of the arrays in a file.
    Raises:
        OSError: if a file cannot be read.
        ValueError: if the index is damaged, or does not match the arrays of its files.
    """
    index = index_of(path)
    if path.exists() or not index.exists():
        return _lazy(read(path))
    content = read_json(index)
    files = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(files, dict) or any(type(n) is not str for n in files.values()):
        raise ValueError(f"{index} is not the index of a checkpoint in several files.")
    for name in files.values():
        if Path(name).name != name:
            raise ValueError(f"{index} has a file in another folder: {name!r:.200}")
    arrays: dict[str, StoredArray] = {}
    for name in sorted(set(files.values())):
        arrays |= read(path.with_name(name))
    unmatched = sorted(arrays.keys() ^ files.keys())
    if unmatched:
        name = unmatched[0]
        lacking = "index" if name in arrays else "files"
        raise ValueError(
            f"{index}: the {lacking} of its checkpoint lack {name[:200]!r}."
        )
    return _lazy(arrays)


def _lazy(arrays):
    return LazyArrays({name: array.read for name, array in arrays.items()})


def item_size(dtype: str) -> int:
    """Number of bytes of one value."""
    return _in_numpy(dtype).itemsize


def _in_numpy(dtype):
    return np.dtype(dtype.replace(BFLOAT16, "u2"))


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


def value_span(shape: Sequence[int], strides: Sequence[int] | None = None) -> int:
    """Number of values from the first to the last value of an array, inclusive.

    Args:
        shape: ints.
        strides: ints, in values; None means contiguous rows.
    """
    if strides is None or 0 in shape:
        return math.prod(shape)
    return 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def checked_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Returns the shape of an array in a file, after checking it.

    Args:
        name: str. The array's name, for the error.
        shape: the value that the file has for the shape.
    Raises:
        ValueError: if it is not a list of sizes, or not possible for an array.
    """
    sizes = shape if isinstance(shape, (list, tuple)) else [shape]
    # Only numbers are shown; for other values the type, as they may be deeply nested.
    shown = [n if type(n) is int else type(n).__name__ for n in sizes[:8]]
    if (
        not isinstance(shape, (list, tuple))
        or len(sizes) > _MOST_DIMENSIONS
        or any(type(n) is not int or not 0 <= n <= LARGEST_INT32 for n in sizes)
        or math.prod(max(n, 1) for n in sizes) > _LARGEST_ARRAY
    ):
        raise ValueError(f"the shape of {name} is {str(shown)[:80]}")
    return tuple(sizes)
