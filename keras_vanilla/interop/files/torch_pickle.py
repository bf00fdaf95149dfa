"""The tensors in PyTorch's pickles: which storage, which part of it."""

import dataclasses
from typing import Any, BinaryIO

from keras_vanilla.interop.files.plain_pickle import (
    Name,
    PlainUnpickler,
    dict_of,
    expect,
)
from keras_vanilla.interop.files.stored_arrays import (
    BFLOAT16,
    checked_shape,
    value_span,
)

_STORAGES = {  # of PyTorch: types of NumPy, without a byte order
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
        key: str. Its name in the file.
        dtype: str. NumPy's name without a byte order, or "bfloat16".
        size: int. Number of values.
    """

    key: str
    dtype: str
    size: int


@dataclasses.dataclass(frozen=True)
class PickledTensor:
    """A tensor as a pickle describes it: a part of a storage.

    Args:
        storage: Storage.
        offset: int. Value of the storage that is the tensor's first.
        shape: tuple of ints.
        strides: tuple of ints, in values.
    """

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class TorchUnpickler(PlainUnpickler):
    """Reads pickles of plain values and PyTorch's tensors.

    Attributes: `storages` has the storages that the pickles name, by their keys.

    Args:
        file: binary file. It is read to the end of one pickle by each `load`.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, _BUILDERS, self._storage)
        self.storages: dict[str, Storage] = {}

    def _storage(self, identity: Any) -> Storage:
        kind, dtype, key, _location, size, *view = expect(identity, tuple)
        if kind != "storage" or any(part is not None for part in view):
            raise ValueError("it holds storages in a form that is not known here")
        dtype = _STORAGES[expect(dtype, Name).name]
        storage = Storage(expect(key, str), dtype, _size(size))
        if self.storages.setdefault(storage.key, storage) != storage:
            raise ValueError(f"its storage {storage.key[:80]} has two sizes or types")
        return storage


def _tensor(storage, offset, shape, strides, *_gradient):
    """A tensor; what follows the strides says how it was trained."""
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


def _parameter(tensor, *_gradient):
    return expect(tensor, PickledTensor)


def _ordered_dict(pairs=()):
    pairs = [expect(pair, list, tuple) for pair in expect(pairs, list, tuple)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("an OrderedDict is not made of pairs")
    return dict_of([value for pair in pairs for value in pair])


_BUILDERS = {
    **dict.fromkeys(_STORAGES),
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
}


def _size(value):
    if type(value) is not int or not 0 <= value < 2**62:
        raise ValueError("a size or stride of a tensor is not a whole number")
    return value
