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

    def gather(self, values: Tensor, indices: Tensor) -> Tensor:
        """The values (n, ...) at indices (...), all of which are in range."""
        return ops.take(values, indices, axis=0)

    def size_for(self, count: Tensor, most: int) -> Any:
        """The size of an axis for `count` values: `most`, as shapes are fixed here."""
        return most

    def true_positions(self, mask: Tensor, most: int) -> Tensor:
        """The positions (`most`,) at which a mask (n,) is True, then n - 1 repeated."""
        size = mask.shape[0]
        sums = ops.cumsum(ops.cast(mask, "int32"))
        numbers = ops.arange(most, dtype="int32")

        def step(bit, first):
            """Binary search for the first position whose sum exceeds the number."""
            probe = first + bit
            before = self.gather(sums, ops.minimum(probe, size) - 1)
            is_before = (probe <= size) & (before <= numbers)
            return bit // 2, ops.where(is_before, probe, first)

        state = (1 << size.bit_length() - 1, ops.zeros((most,), dtype="int32"))
        first = ops.while_loop(lambda bit, first: bit > 0, step, state)[1]
        return ops.minimum(first, size - 1)

    def sort(self, values: Tensor) -> Tensor:
        """Sorts along the last axis, in ascending order."""
        return ops.sort(values, axis=-1)

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
