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
from typing import Any, BinaryIO, NamedTuple

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
    "torch.BFloat16Storage": BFLOAT16,
    "torch.BoolStorage": np.dtype("?"),
    "torch.ByteStorage": np.dtype("u1"),
    "torch.CharStorage": np.dtype("i1"),
    "torch.DoubleStorage": np.dtype("f8"),
    "torch.FloatStorage": np.dtype("f4"),
    "torch.HalfStorage": np.dtype("f2"),
    "torch.IntStorage": np.dtype("i4"),
    "torch.LongStorage": np.dtype("i8"),
    "torch.ShortStorage": np.dtype("i2"),
}


class _Storage(NamedTuple):
    """Numbers of one type that tensors share."""

    key: str
    dtype: np.dtype
    size: int

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


class _Tensor(NamedTuple):
    """A part of a storage, with offset and strides in numbers; not checked yet."""

    storage: Any
    offset: Any
    shape: Any
    strides: Any


class _Unpickler(pickle.Unpickler):
    """Unpickles tensors, numbers, strings, lists and dicts, and nothing else."""

    def __init__(self, file: BinaryIO):
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        name = f"{module}.{name}"
        if name in _STORAGES:
            return name
        if name == "collections.OrderedDict":
            return collections.OrderedDict
        # New functions at each call, because a pickle can change their attributes.
        if name in ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2"):
            return lambda *arguments: _Tensor(*arguments[:4])
        if name == "torch._utils._rebuild_parameter":
            return lambda tensor, *_: tensor
        raise ValueError(
            f"it holds {name[:200]}, and only tensors, numbers, strings, lists and "
            f"dicts are read, so that no code of the file is run; {_REMEDY}"
        )

    def persistent_load(self, identity: Any) -> _Storage:
        what, kind, key, _location, size, *view = identity
        is_plain = type(kind) is type(key) is str and type(size) is int and size >= 0
        if what != "storage" or not is_plain or view not in ([], [None]):
            raise ValueError("its storages have an unknown form")
        storage = _Storage(key, _STORAGES[kind], size)
        if self.storages.setdefault(key, storage) != storage:
            raise ValueError(f"its storage {key[:80]} has two types or sizes")
        return storage


def read_torch(path: PathLike) -> LazyArrays:
    """Opens the arrays of a state dict that was written by `torch.save`.

    All its formats are supported, and also several files with an index, as written by
    Hugging Face.

    No code in the file is run. Its pickle may contain tensors, numbers, strings, lists
    and dicts; anything else is refused. Each array is read on demand; bfloat16 becomes
    float32, and other types are kept.

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
        open_file = _open_zip if zipfile.is_zipfile(path) else _open_sequence
        value, read = open_file(path)
        return {
            name: functools.partial(_read_array, path, read, tensor)
            for name, tensor in _state_dict(value).items()
        }


@contextlib.contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # pickles and zips that are damaged raise many kinds
        raise ValueError(
            f"{path} cannot be read as PyTorch weights: {str(error).rstrip('.')}."
        ) from error


def _open_zip(path):
    """Opens the format since PyTorch 1.6: a pickle, and one entry per storage.

    Returns:
        The value, and a function that reads a storage.
    """
    archive = zipfile.ZipFile(path)
    check_unpacked_size(archive, path.stat().st_size)  # it is not compressed
    sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    pickles = [name for name in sizes if name.endswith("/data.pkl")]
    if len(pickles) != 1 or sizes[pickles[0]] > _LARGEST_PICKLE:
        raise ValueError("it has no data.pkl, several, or one that is too large")
    folder = pickles[0].removesuffix("data.pkl")
    order = f"{folder}byteorder"
    is_big = order in sizes and archive.read(order) == b"big"
    value, storages = _unpickle(io.BytesIO(archive.read(pickles[0])))
    for storage in storages.values():
        size = sizes.get(f"{folder}data/{storage.key}", 0)
        if size != storage.nbytes:
            raise ValueError(
                f"its storage {storage.key[:80]} has {size} bytes for {storage.size} "
                f"values of {storage.dtype}"
            )

    def read(storage):
        content = archive.read(f"{folder}data/{storage.key}")
        if is_big:
            content = np.frombuffer(content, f"u{storage.dtype.itemsize}").byteswap()
        return content

    return value, read


def _open_sequence(path):
    """Opens the format before PyTorch 1.6: five pickles, then the storages."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        pickles = io.BytesIO(file.read(min(size, _LARGEST_PICKLE)))
        if _unpickle(pickles)[0] != _MAGIC_NUMBER:
            raise ValueError("it was not written by torch.save")
        _unpickle(pickles)  # the version of the format
        _unpickle(pickles)  # the machine's properties; numbers are always little-endian
        value, storages = _unpickle(pickles)
        keys, _ = _unpickle(pickles)
        begins, end = {}, pickles.tell()
        for storage in map(storages.__getitem__, keys):
            file.seek(end)
            if int.from_bytes(file.read(8), "little") != storage.size:
                raise ValueError(f"its storage {storage.key[:80]} has another size")
            begins[storage] = end + 8
            end += 8 + storage.nbytes
        if end > size:
            raise ValueError(f"its storages need {end} bytes, and it has {size}")

    def read(storage):
        with open(path, "rb") as file:
            file.seek(begins[storage])
            return file.read(storage.nbytes)

    return value, read


def _unpickle(file: io.BytesIO) -> tuple[Any, dict[str, _Storage]]:
    """Unpickles the next value, and returns it with the storages named in it."""
    begin, tuples = file.tell(), 0
    for opcode, argument, _ in pickletools.genops(file):  # checks lengths of texts
        tuples += opcode.name.startswith("TUPLE")
        is_place = opcode.name.endswith("PUT")  # the unpickler allocates all up to it
        if tuples > _MOST_TUPLES or (is_place and argument > file.tell()):
            raise ValueError("its pickle is damaged, or has too many values")
    end = file.tell()
    unpickler = _Unpickler(io.BytesIO(file.getvalue()[begin:end]))
    return unpickler.load(), unpickler.storages


def _state_dict(value):
    """Returns names and tensors of a state dict, or of the one in a checkpoint."""
    state = value
    if isinstance(value, dict) and not any(
        isinstance(each, _Tensor) for each in dict.values(value)
    ):
        names = [name for name in _STATE_DICTS if name in value]
        state = value[names[0]] if names else None
    if not isinstance(state, dict):
        raise ValueError(f"it has no state dict; {_REMEDY}")
    for name, tensor in dict.items(state):  # a pickle can hide an OrderedDict's own
        if not isinstance(name, str) or not isinstance(tensor, _Tensor):
            shown = name if isinstance(name, str) else type(name).__name__
            raise ValueError(
                f"its {shown:.80} is of type {type(tensor).__name__} instead of a "
                f"tensor; {_REMEDY}"
            )
    return dict(dict.items(state))


def _read_array(path, read, tensor):
    """Reads a tensor, which must be inside its storage."""
    storage, offset, shape, strides = tensor
    with _damage_named(path):
        numbers = (*shape, *strides, offset)
        if any(type(number) is not int or number < 0 for number in numbers):
            raise ValueError("a size or stride of a tensor is not a whole number")
        steps = [step * (size - 1) for size, step in zip(shape, strides, strict=True)]
        needed = max(math.prod(shape), offset + sum(steps) + 1 if all(shape) else 0)
        if not isinstance(storage, _Storage) or needed > storage.size:
            raise ValueError(f"a tensor of shape {shape} is larger than its storage")
        dtype, width = storage.dtype, storage.dtype.itemsize
        steps = [width * step for step in strides]
        array = np.ndarray(shape, dtype, read(storage), width * offset, steps)
        return array.astype("float32" if dtype == BFLOAT16 else dtype, order="C")
