"""Reads the tensors of PyTorch's checkpoints without running code in them."""

import collections
import contextlib
import functools
import io
import math
import pickle
import pickletools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.stored_arrays import (
    BFLOAT16,
    LazyArrays,
    Reader,
    read_shards,
    refuse_git_lfs_pointer,
)
from keras_vanilla.translation.archive import check_unpacked_size

_STATE_DICTS = ("model_state_dict", "state_dict", "model")  # keys in a checkpoint
_REMEDY = "save the weights alone, with torch.save(model.state_dict(), path)"
_LARGEST_PICKLE = 2**22  # bytes; a tensor has a hundred of them
_MOST_TUPLES = 50_000  # a tensor has five; Python crashes at a hash of 100,000 levels
_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C  # first in the format before PyTorch 1.6
_STORAGES = {  # of PyTorch -> types of NumPy
    "BFloat16Storage": BFLOAT16,
    "BoolStorage": np.dtype("?"),
    "ByteStorage": np.dtype("u1"),
    "CharStorage": np.dtype("i1"),
    "DoubleStorage": np.dtype("f8"),
    "FloatStorage": np.dtype("f4"),
    "HalfStorage": np.dtype("f2"),
    "IntStorage": np.dtype("i4"),
    "LongStorage": np.dtype("i8"),
    "ShortStorage": np.dtype("i2"),
}


class _Unpickler(pickle.Unpickler):
    """Unpickles tensors, numbers, strings, lists and dicts, and nothing else.

    Tensors become views of arrays in `storages`, whose numbers are read afterwards.

    Args:
        file: binary file.
        most: int. Most bytes that the storages may have together.
    """

    def __init__(self, file: BinaryIO, most: int):
        super().__init__(file)
        self.storages: dict[str, np.ndarray] = {}
        self._most = most

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGES:
            return name
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        # New functions at each call, because a pickle can change their attributes.
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda *arguments: _view(*arguments[:4])
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        raise ValueError(
            f"it holds {module[:100]}.{name[:100]}, and only tensors, numbers, "
            "strings, lists and dicts are read, so that no code of the file is run; "
            f"{_REMEDY}"
        )

    def persistent_load(self, identity: Any) -> np.ndarray:
        what, kind, key, _location, size, *view = identity
        if what != "storage" or type(size) is not int or view not in ([], [None]):
            raise ValueError("its storages have an unknown form")
        if key not in self.storages:
            self._most -= _STORAGES[kind].itemsize * size
            if self._most < 0:
                raise ValueError(f"its storage {key[:80]} has {size} values")
            self.storages[key] = np.zeros(size, _STORAGES[kind])
        return self.storages[key]


def _view(storage: Any, offset: Any, shape: Any, strides: Any) -> np.ndarray:
    """Returns a tensor, which must be inside its storage."""
    numbers = (*shape, *strides, offset)
    if any(type(number) is not int or number < 0 for number in numbers):
        raise ValueError("a size or stride of a tensor is not a whole number")
    steps = [step * (size - 1) for size, step in zip(shape, strides, strict=True)]
    needed = max(math.prod(shape), offset + sum(steps) + 1 if all(shape) else 0)
    if needed > storage.size:
        raise ValueError(f"a tensor of shape {shape} is larger than its storage")
    width = storage.itemsize
    strides = [width * step for step in strides]
    return np.ndarray(shape, storage.dtype, storage, width * offset, strides)


def read_torch(path: PathLike) -> LazyArrays:
    """Reads the arrays of a state dict that was written by `torch.save`.

    All its formats are supported, and also several files with an index, as written by
    Hugging Face.

    No code in the file is run. Its pickle may contain tensors, numbers, strings, lists
    and dicts; anything else is refused. bfloat16 becomes float32, and other types are
    kept.

    Args:
        path: path of a state dict, or of a checkpoint of plain values with a state dict
            named "model_state_dict", "state_dict" or "model". If it does not exist, its
            index is read, such as `pytorch_model.bin.index.json`.
    Returns:
        Mapping of name -> array. Tensors that share their numbers are separate arrays.
    Raises:
        OSError: if the file cannot be read.
        ValueError: if the file is truncated or damaged, contains anything but plain
            values, has no state dict, or was not written by `torch.save`.
    """
    return read_shards(Path(path), _read_file)


def _read_file(path: Path) -> dict[str, Reader]:
    refuse_git_lfs_pointer(path)
    with _damage_named(path):
        read = _read_zip if zipfile.is_zipfile(path) else _read_sequence
        state = _state_dict(read(path, path.stat().st_size))
        return {name: functools.partial(_copy, array) for name, array in state.items()}


@contextlib.contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # pickles and zips that are damaged raise many kinds
        raise ValueError(
            f"{path} cannot be read as PyTorch weights: {str(error).rstrip('.')}."
        ) from error


def _read_zip(path: Path, size: int) -> Any:
    """Reads the format since PyTorch 1.6: a pickle, and one entry per storage."""
    with zipfile.ZipFile(path) as archive:
        check_unpacked_size(archive, size)  # it is not compressed
        names = archive.namelist()
        pickles = [name for name in names if name.endswith("/data.pkl")]
        if len(pickles) != 1 or archive.getinfo(pickles[0]).file_size > _LARGEST_PICKLE:
            raise ValueError("it has no data.pkl, several, or one that is too large")
        folder = pickles[0].removesuffix("data.pkl")
        order = f"{folder}byteorder"
        if order in names and archive.read(order) != b"little":
            raise ValueError("its numbers are not in little-endian order")
        value, storages = _unpickle(io.BytesIO(archive.read(pickles[0])), size)
        for key, storage in storages.items():
            _fill(storage, key, archive.read(f"{folder}data/{key}"))
        return value


def _read_sequence(path: Path, size: int) -> Any:
    """Reads the format before PyTorch 1.6: five pickles, then the storages."""
    with open(path, "rb") as file:
        pickles = io.BytesIO(file.read(min(size, _LARGEST_PICKLE)))
        if _unpickle(pickles)[0] != _MAGIC_NUMBER:
            raise ValueError("it was not written by torch.save")
        _unpickle(pickles)  # the version of the format
        _unpickle(pickles)  # the machine's properties; numbers are always little-endian
        value, storages = _unpickle(pickles, size)
        keys, _ = _unpickle(pickles)
        if set(keys) != storages.keys():
            raise ValueError(f"its storages are {list(storages)[:9]}, not {keys[:9]}")
        file.seek(pickles.tell())
        for key in keys:
            storage = storages[key]
            if int.from_bytes(file.read(8), "little") != storage.size:
                raise ValueError(f"its storage {key[:80]} has another size")
            _fill(storage, key, file.read(storage.nbytes))
    return value


def _unpickle(file: io.BytesIO, most: int = 0) -> tuple[Any, dict[str, np.ndarray]]:
    """Unpickles the next value, and returns it with the storages named in it."""
    begin, tuples = file.tell(), 0
    for opcode, argument, _ in pickletools.genops(file):  # checks lengths of texts
        tuples += opcode.name.startswith("TUPLE")
        is_place = opcode.name.endswith("PUT")  # the unpickler allocates all up to it
        if tuples > _MOST_TUPLES or (is_place and argument > file.tell()):
            raise ValueError("its pickle is damaged, or has too many values")
    end = file.tell()
    unpickler = _Unpickler(io.BytesIO(file.getvalue()[begin:end]), most)
    return unpickler.load(), unpickler.storages


def _fill(storage: np.ndarray, key: str, content: bytes) -> None:
    if len(content) != storage.nbytes:
        raise ValueError(
            f"its storage {key[:80]} has {len(content)} bytes for {storage.size} "
            f"values of {storage.dtype}"
        )
    storage[:] = np.frombuffer(content, storage.dtype)


def _state_dict(value: Any) -> dict[str, np.ndarray]:
    """Returns names and tensors of a state dict, or of the one in a checkpoint."""
    names = [name for name in _STATE_DICTS if isinstance(value, dict) and name in value]
    state = value[names[0]] if names else value
    if not isinstance(state, dict):
        raise ValueError(f"it has no state dict; {_REMEDY}")
    state = dict(dict.items(state))  # a pickle can hide an OrderedDict's own
    for name, tensor in state.items():
        if not isinstance(name, str) or not isinstance(tensor, np.ndarray):
            raise ValueError(
                f"its {name!s:.80} is of type {type(tensor).__name__} instead of a "
                f"tensor; {_REMEDY}"
            )
    return state


def _copy(array: np.ndarray) -> np.ndarray:
    return array.astype(
        "float32" if array.dtype == BFLOAT16 else array.dtype, order="C"
    )
