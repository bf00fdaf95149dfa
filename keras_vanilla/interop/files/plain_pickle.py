"""Pickles of plain values, read without importing or calling anything.

Python's unpickler calls any function that a pickle names. This one supports only the
operations for plain values; names in a pickle are looked up in a table and are never
imported.
"""

import dataclasses
import pickletools
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

REMEDY = "save the weights alone, with torch.save(model.state_dict(), path)"
_MOST_OPERATIONS = 1_000_000  # a state dict of PyTorch needs about 60 per tensor
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
class Name:
    """The name of a Python object in a pickle, such as a class."""

    name: str


class PlainUnpickler:
    """Reads pickles of dicts, lists, tuples, numbers, strings, and values of builders.

    Args:
        file: binary file. Each `load` reads to the end of one pickle.
        builders: dict of name -> function that makes a plain value from the arguments
            of a call in the pickle, or None if the name is not called. A pickle with
            any other name is refused.
        load_persistent: function that maps a persistent id to its value.
    """

    def __init__(
        self,
        file: BinaryIO,
        builders: Mapping[str, Callable[..., Any] | None],
        load_persistent: Callable[[Any], Any],
    ) -> None:
        self._file = file
        self._builders = builders
        self._load_persistent = load_persistent

    def load(self) -> Any:
        """Returns the value of the next pickle.

        Raises:
            ValueError: if it is damaged, or contains anything but plain values.
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
        """Runs one operation."""
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
                    f"it uses the operation {name}, which plain values do not need"
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

    # Containers: a mark begins a new stack, for the values up to its container.

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
        expect(self._stack[-1], list).extend(values)

    def _on_empty_dict(self):
        self._push({})

    def _on_dict(self):
        self._push(dict_of(self._marked()))

    def _on_setitem(self):
        self._update(self._popped(2))

    def _on_setitems(self):
        self._update(self._marked())

    def _update(self, values):
        expect(self._stack[-1], dict).update(dict_of(values))

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

    # Names and calls.

    def _on_global(self, name):
        self._push_name(*name.split(" ", 1))

    def _on_stack_global(self):
        module, name = self._popped(2)
        self._push_name(expect(module, str), expect(name, str))

    def _push_name(self, module, name):
        name = f"{module}.{name}"
        if name not in self._builders:
            raise ValueError(
                f"it holds {name[:200]}, and only tensors, numbers, strings, lists and "
                f"dicts are read, so that no code of the file is run; {REMEDY}"
            )
        self._push(Name(name))

    def _on_reduce(self):
        called, arguments = self._popped(2)
        build = self._builders[expect(called, Name).name]
        if build is None:
            raise ValueError(f"it calls {called.name}")
        self._push(build(*expect(arguments, tuple)))

    def _on_build(self):
        """Drops the attributes of a dict, which are not among its values."""
        self._popped(1)
        expect(self._stack[-1], dict)

    def _on_binpersid(self):
        self._push(self._load_persistent(*self._popped(1)))


def dict_of(values: list[Any]) -> dict[Any, Any]:
    """Makes a dict from alternating keys and values.

    Args:
        values: list. Tuples are not allowed as keys, because hashing a deeply nested
            tuple crashes Python.
    Raises:
        ValueError: if a key has no value, or is not a string or number.
    """
    if len(values) % 2:
        raise ValueError("a dict of it has a key without a value")
    keys = [expect(key, str, int, float, bytes) for key in values[::2]]
    return dict(zip(keys, values[1::2], strict=True))


def expect(value: Any, *kinds: type) -> Any:
    """Returns the value if it has one of the given types.

    Raises:
        ValueError: if it has another type.
    """
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"it has a {type(value).__name__} in the place of a {expected}"
        )
    return value
