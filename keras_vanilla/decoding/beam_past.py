"""The past that a model caches for each beam, and how beams branch."""

from typing import Any

import keras
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.searched_model import SearchedModel


def beam_past(model: SearchedModel, beam_size: int) -> "SharedPast | CopiedPast":
    """Creates the past of K beams in the form that the model supports.

    Args:
        model: SearchedModel.
        beam_size: int (K).
    """
    return (SharedPast if model.shares_beams else CopiedPast)(model, beam_size)


class _Past:
    """Base class for the past of K beams."""

    def __init__(self, model: SearchedModel, beam_size: int):
        self._model, self._beam_size = model, beam_size


class SharedPast(_Past):
    """One past for all beams of a row, which is not copied when beams branch.

    The keys and values of all beams are kept in the order in which they were computed.
    The `ancestors` of the cache mark those that belong to each beam.

    Args:
        model: SearchedModel whose `shares_beams` is True.
        beam_size: int (K).
    """

    def start(self, memory: Tensor, memory_mask: Tensor, length: Tensor | int) -> Any:
        """The cache before the first step."""
        return self._model.start_cache(memory, memory_mask, length, self._beam_size)

    def step(self, ids: Tensor, index: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Logits (B, K, V) after the tokens (B, K), and the cache with these."""
        return self._model.decode_step(ids, index, cache)

    def of_parents(self, cache: Any, before: Any, parents: Tensor) -> Any:
        """The cache with the past of each beam's parent (B, K)."""
        return cache._replace(ancestors=of_parents(cache.ancestors, parents))


class CopiedPast(_Past):
    """A separate past for each beam, as for a row of its own; works with every model.

    Args:
        model: SearchedModel.
        beam_size: int (K).
    """

    def start(self, memory: Tensor, memory_mask: Tensor, length: Tensor | int) -> Any:
        """The cache before the first step, with the K beams of a row in order."""
        rows = (ops.repeat(x, self._beam_size, axis=0) for x in (memory, memory_mask))
        return self._model.start_cache(*rows, length)

    def step(self, ids: Tensor, index: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Logits (B, K, V) after the tokens (B, K), and the cache with these."""
        batch, beam_size = ops.shape(ids)
        logits, cache = self._model.decode_step(ops.reshape(ids, (-1,)), index, cache)
        return ops.reshape(logits, (batch, beam_size, ops.shape(logits)[1])), cache

    def of_parents(self, cache: Any, before: Any, parents: Tensor) -> Any:
        """The cache with the past of each beam's parent (B, K).

        Tensors that steps do not change, such as the memory's keys, are equal for all
        beams of a row and are not copied.
        """
        if self._beam_size == 1:
            return cache  # a single beam is its own parent
        rows = ops.reshape(_rows(parents, self._beam_size), (-1,))  # (B K,)
        return keras.tree.map_structure(
            lambda value, old: value if value is old else ops.take(value, rows, axis=0),
            cache,
            before,
        )


def of_parents(values: Tensor, parents: Tensor) -> Tensor:
    """Selects the values of `parents` (B, n): (B, K, ...) -> (B, n, ...)."""
    batch, beam_size, *rest = ops.shape(values)
    rows = ops.reshape(values, (batch * beam_size, *rest))
    return ops.take(rows, _rows(parents, beam_size), axis=0)


def _rows(parents, beam_size):
    """Maps beam numbers (B, n) within a row to indices over the beams of all rows."""
    batch = ops.shape(parents)[0]
    return ops.expand_dims(ops.arange(batch, dtype="int32") * beam_size, 1) + parents
