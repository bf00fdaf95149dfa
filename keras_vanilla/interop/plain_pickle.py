"""Pickles of plain values and PyTorch tensors, read without calling what they name.

Python's own unpickler calls whatever a pickle asks for. This one is a table of the
operations that plain values are made of; a name in a pickle is looked up in a table of
its own, and is never imported.
"""

import dataclasses
import pickletools
from typing import Any, BinaryIO

from keras_vanilla.interop.stored_arrays import BFLOAT16, checked_shape, value_span

REMEDY = "save the weights alone, with torch.save(model.state_dict(), path)"
_MOST_OPERATIONS = 1_000_000  # a state dict needs about 60 for each tensor
_STORAGES = {  # of PyTorch: types of NumPy, without a byte order
    "BFloat16Storage": BFLOAT16,
    "BoolStorage": "b1",
    "ByteStorage": "u1",
    "CharStorage": "i1",
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "IntStorage": "i4",
    "LongStorage": "i8",
    "ShortStorage": "i2",
}
_CONSTANTS = {
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "EMPTY_TUPLE": (),
}
_VALUES = {  # operations whose argument is the value
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
    *("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = {"PROTO", "FRAME"}


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


class PlainUnpickler:
    """Reads pickles of plain values: dicts, lists, tuples, numbers, strings, tensors.

    Attributes: `storages` has the storages that the pickles name, by their keys.

    Args:
        file: binary file. It is read to the end of one pickle by each `load`.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.storages: dict[str, Storage] = {}
        self._file = file

    def load(self) -> Any:
        """The value of the next pickle.

        Raises:
            ValueError: if it is damaged, or holds anything but plain values.
        """
        self._stack: list[Any] = []
        self._outer_stacks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        try:
            operations = pickletools.genops(self._file)
            for count, (opcode, argument, _position) in enumerate(operations):
                if count == _MOST_OPERATIONS:
                    raise ValueError(f"it has more than {count:,} values")
                if opcode.name == "STOP":
                    return self._stack.pop()
                self._run(opcode.name, argument)
        except (IndexError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"its pickle is damaged ({error!r})") from error
        raise ValueError("its pickle has no end")

    def _run(self, name, argument):
        """One operation."""
        if name in _VALUES:
            self._push(argument)
        elif name in _CONSTANTS:
            self._push(_CONSTANTS[name])
        elif name in _TUPLES:
            self._push(tuple(self._popped(_TUPLES[name])))
        elif name not in _IGNORED:
            operation = getattr(self, f"_on_{name.lower()}", None)
            if operation is None:
                raise ValueError(
                    f"it asks for the operation {name}, which plain values do not need"
                )
            operation(argument) if argument is not None else operation()

    def _push(self, value):
        self._stack.append(value)

    def _popped(self, count):
        if count > len(self._stack):
            raise IndexError("the stack is too short")
        values = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return values

    # Containers: a mark begins a stack of its own, for the values up to its container.

    def _on_mark(self):
        self._outer_stacks.append(self._stack)
        self._stack = []

    def _marked(self):
        values, self._stack = self._stack, self._outer_stacks.pop()
        return values

    def _on_pop_mark(self):
        self._marked()

    def _on_tuple(self):
        self._push(tuple(self._marked()))

    def _on_empty_list(self):
        self._push([])

    def _on_list(self):
        self._push(self._marked())

    def _on_append(self):
        self._extend(self._popped(1))

    def _on_appends(self):
        self._extend(self._marked())

    def _extend(self, values):
        _expect(self._stack[-1], list).extend(values)

    def _on_empty_dict(self):
        self._push({})

    def _on_dict(self):
        self._push(_dict_of(self._marked()))

    def _on_setitem(self):
        self._update(self._popped(2))

    def _on_setitems(self):
        self._update(self._marked())

    def _update(self, values):
        _expect(self._stack[-1], dict).update(_dict_of(values))

    # The stack and the memo.

    def _on_pop(self):
        self._popped(1)

    def _on_dup(self):
        self._push(self._stack[-1])

    def _on_memoize(self):
        self._memo[len(self._memo)] = self._stack[-1]

    def _on_put(self, index):
        self._memo[index] = self._stack[-1]

    _on_binput = _on_long_binput = _on_put

    def _on_get(self, index):
        self._push(self._memo[index])

    _on_binget = _on_long_binget = _on_get

    # Names, and what a pickle wants to call.

    def _on_global(self, name):
        self._push(_Name.of(*name.split(" ", 1)))

    def _on_stack_global(self):
        module, name = self._popped(2)
        self._push(_Name.of(_expect(module, str), _expect(name, str)))

    def _on_reduce(self):
        name, arguments = self._popped(2)
        build = _BUILDERS.get(_expect(name, _Name).name)
        if build is None:
            raise ValueError(f"it asks to call {name.name}")
        self._push(build(*_expect(arguments, tuple)))

    def _on_build(self):
        """Attributes of a state dict, which are not weights: the versions of layers."""
        self._popped(1)
        _expect(self._stack[-1], dict)

    def _on_binpersid(self):
        kind, dtype, key, _location, size, *view = _expect(*self._popped(1), tuple)
        if kind != "storage" or any(part is not None for part in view):
            raise ValueError("it holds storages in a form that is not known here")
        dtype = _STORAGES[_expect(dtype, _Name).name.removeprefix("torch.")]
        storage = Storage(str(_expect(key, str, int)), dtype, _size(size))
        if self.storages.setdefault(storage.key, storage) != storage:
            raise ValueError(f"its storage {storage.key[:80]} has two sizes or types")
        self._push(storage)


@dataclasses.dataclass(frozen=True)
class _Name:
    """A name of Python's that a pickle has; it stays a name."""

    name: str

    @classmethod
    def of(cls, module, name):
        full = f"{module}.{name}"
        if full not in _BUILDERS and full.removeprefix("torch.") not in _STORAGES:
            raise ValueError(
                f"it holds {full[:200]}, and only tensors, numbers, strings, lists and "
                f"dicts are read, so that no code of the file is run; {REMEDY}"
            )
        return cls(full)


def _tensor(storage, offset, shape, strides, *_gradient):
    """A tensor; what follows the strides says how it was trained."""
    storage = _expect(storage, Storage)
    shape = checked_shape("a tensor", shape)
    strides = tuple(_size(step) for step in _expect(strides, tuple))
    if len(shape) != len(strides):
        raise ValueError(f"a tensor has the shape {shape} and the strides {strides}")
    end = _size(offset) + value_span(shape, strides)
    if end > storage.size or value_span(shape) > storage.size:
        raise ValueError(
            f"a tensor of shape {shape} and strides {strides} from {offset} needs more "
            f"than its storage of {storage.size} values"
        )
    return PickledTensor(storage, offset, shape, strides)


def _parameter(tensor, *_gradient):
    return _expect(tensor, PickledTensor)


def _ordered_dict(pairs=()):
    pairs = [_expect(pair, list, tuple) for pair in _expect(pairs, list, tuple)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("an OrderedDict is not made of pairs")
    return _dict_of([value for pair in pairs for value in pair])


_BUILDERS = {
    "collections.OrderedDict": _ordered_dict,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
}


def _dict_of(values):
    """Keys and values in turn. No tuple is a key: hashing a deep one ends Python."""
    if len(values) % 2:
        raise ValueError("a dict of it has a key without a value")
    keys = [_expect(key, str, int, float, bytes) for key in values[::2]]
    return dict(zip(keys, values[1::2], strict=True))


def _size(value):
    if type(value) is not int or not 0 <= value < 2**62:
        raise ValueError("a size or stride of a tensor is not a whole number")
    return value


def _expect(value, *kinds):
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__.strip("_") for kind in kinds)
        raise ValueError(
            f"it has a {type(value).__name__.strip('_')} in the place of a {expected}"
        )
    return value
