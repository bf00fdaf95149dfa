"""Reads the tensors of PyTorch's checkpoints without running code in them."""

import dataclasses
import io
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.plain_pickle import (
    REMEDY,
    Name,
    PlainUnpickler,
    dict_of,
    expect,
)
from keras_vanilla.interop.files.stored_arrays import (
    BFLOAT16,
    LazyArrays,
    StoredArray,
    checked_shape,
    item_size,
    read_shards,
    refuse_git_lfs_pointer,
    value_span,
)

_STATE_DICTS = ("model_state_dict", "state_dict", "model")  # keys in a checkpoint
_LARGEST_PICKLE = 2**24  # bytes; it has names and shapes, but no numbers
_ZIP_START = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, length of the name, of the rest
_ENCRYPTED = 1  # a bit of an entry's flags
_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C  # first in the format before PyTorch 1.6
_PROTOCOL = 1001
_BYTE_ORDERS = {b"little": "<", b"big": ">"}
_STORAGES = {  # of PyTorch -> types of NumPy, without a byte order
    "torch.BFloat16Storage": BFLOAT16,
    "torch.BoolStorage": "b1",
    "torch.ByteStorage": "u1",
    "torch.CharStorage": "i1",
    "torch.DoubleStorage": "f8",
    "torch.FloatStorage": "f4",
    "torch.HalfStorage": "f2",
    "torch.IntStorage": "i4",
    "torch.LongStorage": "i8",
    "torch.ShortStorage": "i2",
}


@dataclasses.dataclass(frozen=True)
class Storage:
    """Numbers of one type that tensors share.

    Args:
        key: str. Name in the file.
        dtype: str. NumPy's name without a byte order, or "bfloat16".
        size: int. Number of values.
    """

    key: str
    dtype: str
    size: int


@dataclasses.dataclass(frozen=True)
class PickledTensor:
    """A tensor in a pickle, which is a part of a storage.

    Args:
        storage: Storage.
        offset: int. Position of the tensor's first value in the storage.
        shape: tuple of ints.
        strides: tuple of ints, in values.
    """

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class TorchUnpickler(PlainUnpickler):
    """Reads pickles of plain values and PyTorch's tensors.

    Attributes: `storages` has the storages named in the pickles, by key.

    Args:
        file: binary file. Each `load` reads to the end of one pickle.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, _BUILDERS, self._storage)
        self.storages: dict[str, Storage] = {}

    def _storage(self, identity: Any) -> Storage:
        kind, dtype, key, _location, size, *view = expect(identity, tuple)
        if kind != "storage" or any(part is not None for part in view):
            raise ValueError("its storages have an unknown form")
        dtype = _STORAGES[expect(dtype, Name).name]
        storage = Storage(expect(key, str), dtype, _size(size))
        if self.storages.setdefault(storage.key, storage) != storage:
            raise ValueError(f"its storage {storage.key[:80]} has two sizes or types")
        return storage


def _tensor(storage, offset, shape, strides, *_gradient):
    """Returns a tensor; the arguments after the strides concern training."""
    storage = expect(storage, Storage)
    shape = checked_shape("a tensor", shape)
    strides = tuple(_size(step) for step in expect(strides, tuple))
    if len(shape) != len(strides):
        raise ValueError(f"a tensor of shape {shape} has {len(strides)} strides")
    end = _size(offset) + value_span(shape, strides)
    if end > storage.size or value_span(shape) > storage.size:
        raise ValueError(
            f"a tensor of shape {shape} and strides {strides} from {offset} needs more "
            f"than its storage of {storage.size} values"
        )
    return PickledTensor(storage, offset, shape, strides)


def _ordered_dict(pairs=()):
    pairs = [expect(pair, list, tuple) for pair in expect(pairs, list, tuple)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("an OrderedDict is not made of pairs")
    return dict_of([value for pair in pairs for value in pair])


_BUILDERS = {
    **dict.fromkeys(_STORAGES),
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_parameter": lambda tensor, *_: expect(tensor, PickledTensor),
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
}


def _size(value):
    if type(value) is not int or not 0 <= value < 2**62:
        raise ValueError("a size or stride of a tensor is not a whole number")
    return value


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


def _read_file(path):
    """Returns the location of each array in a file."""
    refuse_git_lfs_pointer(path)
    try:
        with open(path, "rb") as file:
            is_zip = file.read(4) == _ZIP_START
            checkpoint = _Zip(file) if is_zip else _Sequence(file)
            return {
                name: _stored(path, tensor, *checkpoint.place_of(tensor.storage))
                for name, tensor in _state_dict(checkpoint.value).items()
            }
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read as PyTorch weights: {str(error).rstrip('.')}."
        ) from error


class _Zip:
    """The format since PyTorch 1.6, a zip of a pickle and one entry per storage."""

    def __init__(self, file):
        self._file = file
        self._size = file.seek(0, io.SEEK_END)
        self._entries = _entries(file)
        pickles = [name for name in self._entries if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError(f"it has {len(pickles)} entries named data.pkl")
        self._folder = pickles[0].removesuffix("data.pkl")
        self.value = TorchUnpickler(io.BytesIO(self._read("data.pkl"))).load()
        has_order = f"{self._folder}byteorder" in self._entries
        order = self._read("byteorder") if has_order else b"little"
        if order not in _BYTE_ORDERS:
            raise ValueError(f"its byte order is {order[:20]!r}")
        self._byte_order = _BYTE_ORDERS[order]

    def place_of(self, storage):
        """The first byte of a storage in the file, and its byte order."""
        begin, size = self._range(f"data/{storage.key}")
        if size != storage.size * item_size(storage.dtype):
            raise ValueError(
                f"its storage {storage.key[:80]} has {size} bytes for {storage.size} "
                f"values of {storage.dtype}"
            )
        return begin, self._byte_order

    def _read(self, name):
        """Returns the bytes of a small entry."""
        begin, size = self._range(name)
        if size > _LARGEST_PICKLE:
            raise ValueError(f"its entry {name} has {size} bytes, which is too much")
        self._file.seek(begin)
        return self._file.read(size)

    def _range(self, name):
        """Returns the position of an entry in the file and its size in bytes."""
        entry = self._entries.get(self._folder + name)
        if entry is None:
            raise ValueError(f"its entry {name[:80]} is missing")
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & _ENCRYPTED:
            raise ValueError(f"its entry {name[:80]} is compressed or encrypted")
        self._file.seek(max(entry.header_offset, 0))
        header = self._file.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or not header.startswith(_ZIP_START):
            raise ValueError(f"its entry {name[:80]} is not where it should be")
        begin = self._file.tell() + sum(_LOCAL_HEADER.unpack(header)[1:])
        if begin + entry.file_size > self._size:
            raise ValueError(f"it ends within its entry {name[:80]}")
        return begin, entry.file_size


def _entries(file):
    """Returns the entries of a zip file, by name."""
    try:
        entries = zipfile.ZipFile(file).infolist()
    except (NotImplementedError, OSError, struct.error, zipfile.BadZipFile) as error:
        raise ValueError(f"its list of entries is damaged ({error})") from error
    by_name = {entry.filename: entry for entry in entries}
    if len(by_name) != len(entries):
        raise ValueError("two of its entries have the same name")
    return by_name


class _Sequence:
    """The format before PyTorch 1.6: five pickles, then the storages."""

    def __init__(self, file):
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        pickles = io.BytesIO(file.read(min(size, _LARGEST_PICKLE)))
        if _MAGIC_NUMBER.to_bytes(10, "little") not in pickles.read(40):
            raise ValueError("it was not written by torch.save")
        pickles.seek(0)
        unpickler = TorchUnpickler(pickles)
        if unpickler.load() != _MAGIC_NUMBER or unpickler.load() != _PROTOCOL:
            raise ValueError("its version is unknown")
        unpickler.load()  # the machine's properties; numbers are always little-endian
        self.value = unpickler.load()
        keys = unpickler.load()
        self._first_bytes = {}
        end = pickles.tell()
        for key in keys if isinstance(keys, list) else [keys]:
            storage = unpickler.storages.get(key) if isinstance(key, str) else None
            if storage is None:
                raise ValueError("it has a storage that no tensor is a part of")
            file.seek(end)
            if int.from_bytes(file.read(8), "little") != storage.size:
                raise ValueError(f"its storage {storage.key[:80]} has another size")
            self._first_bytes[storage.key] = begin = end + 8
            end = begin + storage.size * item_size(storage.dtype)
            if end > size:
                raise ValueError(f"it ends within its storage {storage.key[:80]}")

    def place_of(self, storage):
        """The first byte of a storage in the file, and its byte order."""
        if storage.key not in self._first_bytes:
            raise ValueError(f"its storage {storage.key[:80]} is missing")
        return self._first_bytes[storage.key], "<"


def _state_dict(value):
    """Returns names and tensors of a state dict, or of the one in a checkpoint."""
    if not isinstance(value, dict):
        raise ValueError(f"it contains a {type(value).__name__}, not a dict; {REMEDY}")
    tensors = {k: v for k, v in value.items() if isinstance(v, PickledTensor)}
    if not tensors:
        names = [name for name in _STATE_DICTS if isinstance(value.get(name), dict)]
        if not names:
            keys = ", ".join(repr(key)[:40] for key in list(value)[:5])
            raise ValueError(f"it has the keys {keys}, and no state dict; {REMEDY}")
        value = value[names[0]]
    for name, tensor in value.items():
        if not isinstance(name, str) or not isinstance(tensor, PickledTensor):
            raise ValueError(
                f"its {name!r:.80} is of type {type(tensor).__name__} instead of a "
                f"tensor; {REMEDY}"
            )
    return value


def _stored(path, tensor, first_byte, byte_order):
    """Returns the location of a tensor whose storage begins at `first_byte`."""
    dtype = tensor.storage.dtype
    begin = first_byte + tensor.offset * item_size(dtype)
    return StoredArray(path, begin, byte_order + dtype, tensor.shape, tensor.strides)
