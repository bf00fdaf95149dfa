"""`keras.ops.slice_update`, which an export can replace in its own thread."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from keras import ops

from keras_vanilla._types import Tensor

_REPLACEMENT: ContextVar[Callable | None] = ContextVar("slice_update", default=None)


def slice_update(inputs: Tensor, start_indices: Sequence, updates: Tensor) -> Tensor:
    """Returns `inputs` with a slice replaced, as `keras.ops.slice_update` does."""
    update = _REPLACEMENT.get() or ops.slice_update
    return update(inputs, start_indices, updates)


@contextmanager
def slice_update_by(function: Callable) -> Iterator[None]:
    """Makes `slice_update` call another function in the block, in this thread only."""
    token = _REPLACEMENT.set(function)
    try:
        yield
    finally:
        _REPLACEMENT.reset(token)
