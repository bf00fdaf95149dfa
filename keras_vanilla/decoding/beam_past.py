"""What a model keeps of the past of each beam, and how a beam follows its parent."""

from typing import Any

import keras
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.decoding.searched_model import SearchedModel


def beam_past(model: SearchedModel, beam_size: int) -> "SharedPast | CopiedPast":
    """The past of K beams, as the model can keep it.

    Args:
        model: SearchedModel.
        beam_size: int (K).
    """
    return (SharedPast if model.shares_beams else CopiedPast)(model, beam_size)


class _Past:
    """The past of K beams of a model."""

    def __init__(self, model: SearchedModel, beam_size: int):
        self._model, self._beam_size = model, beam_size


class SharedPast(_Past):
    """One past for all beams of a row: nothing of it is copied when beams branch.

    The keys and values of all beams are kept in the order in which they were computed.
    The `ancestors` of the cache say which of them belong to each beam.

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
    """A past for each beam, as if each were a row; for every model.

    Args:
        model: SearchedModel.
        beam_size: int (K).
    """

    def start(self, memory: Tensor, memory_mask: Tensor, length: Tensor | int) -> Any:
        """The cache before the first step; it has the K of a row in order."""
        rows = (ops.repeat(x, self._beam_size, axis=0) for x in (memory, memory_mask))
        return self._model.start_cache(*rows, length)

    def step(self, ids: Tensor, index: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Logits (B, K, V) after the tokens (B, K), and the cache with these."""
        batch, beam_size = ops.shape(ids)
        logits, cache = self._model.decode_step(ops.reshape(ids, (-1,)), index, cache)
        return ops.reshape(logits, (batch, beam_size, ops.shape(logits)[1])), cache

    def of_parents(self, cache: Any, before: Any, parents: Tensor) -> Any:
        """The cache with the past of each beam's parent (B, K).

        Tensors that a step does not change, such as the memory's keys, are equal in all
        beams of a row and stay as they are.
        """
        rows = ops.reshape(_rows(parents, self._beam_size), (-1,))  # (B K,)
        return keras.tree.map_structure(
            lambda value, old: value if value is old else ops.take(value, rows, axis=0),
            cache,
            before,
        )


class SinglePast(CopiedPast):
    """The past of one beam, which has no other parent than itself.

    Args:
        model: SearchedModel.
        beam_size: int. 1.
    """

    def of_parents(self, cache: Any, before: Any, parents: Tensor) -> Any:
        """The cache as it is."""
        return cache


def of_parents(values: Tensor, parents: Tensor) -> Tensor:
    """(B, K, ...) of each beam -> (B, n, ...) of the beams `parents` (B, n)."""
    batch, beam_size, *rest = ops.shape(values)
    rows = ops.reshape(values, (batch * beam_size, *rest))
    return ops.take(rows, _rows(parents, beam_size), axis=0)


def _rows(parents, beam_size):
    """(B, n) beams of each row -> their places among the beams of all rows."""
    batch = ops.shape(parents)[0]
    return ops.expand_dims(ops.arange(batch, dtype="int32") * beam_size, 1) + parents
