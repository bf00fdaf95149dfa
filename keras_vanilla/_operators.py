"""Operations of the layers that an export computes in another way."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from keras import ops

from keras_vanilla._types import Tensor


class Operators:
    """The operations as Keras computes them; subclasses suit a runtime better."""

    def slice_update(
        self, inputs: Tensor, start_indices: Sequence, updates: Tensor
    ) -> Tensor:
        """Returns `inputs` with a slice replaced, as `keras.ops.slice_update` does."""
        return ops.slice_update(inputs, start_indices, updates)

    def lookup(self, table: Tensor, ids: Tensor) -> Tensor:
        """Looks up the rows (..., D) of a table (V, D) for ids (...)."""
        return ops.take(table, ids, axis=0)

    def project(
        self, attention: Any, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Computes the queries, keys and values of all heads of an attention."""
        return (
            attention.project_query(query),
            attention.project_key(key),
            attention.project_value(value),
        )


_USUAL = Operators()
_CURRENT: ContextVar[Operators] = ContextVar("operators", default=_USUAL)


def current_operators() -> Operators:
    """Returns the operators of this thread."""
    return _CURRENT.get()


@contextmanager
def use_operators(operators: Operators) -> Iterator[None]:
    """Makes layers compute with other operators in the block, in this thread only."""
    token = _CURRENT.set(operators)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def slice_update(inputs: Tensor, start_indices: Sequence, updates: Tensor) -> Tensor:
    """Returns `inputs` with a slice replaced, by the operators of this thread."""
    return current_operators().slice_update(inputs, start_indices, updates)
