"""The model interface of a search."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from keras import ops

from keras_vanilla._types import Tensor


class SearchedModel(Protocol):
    """The interface of searched models, such as `Transformer`.

    A custom model inherits from this class and defines `encode`, `start_cache` and
    `decode_step`. Its cache may be any structure of tensors, batch first.

    Attributes:
        pad_id, start_id, end_id: int.
        max_length: int. Longest output in tokens, including the end.
        target_vocabulary_size: int or None. If given, the ids of prefixes are checked.
        source_vocabulary_size: int or None. If given, source ids are checked.
        forbidden_ids: sequence of int. Target ids that are never chosen; prefixes must
            not have them.
        shares_beams: bool. Whether `start_cache` and `decode_step` accept K hypotheses
            per row at once, with a `Cache` that has `ancestors`.
        noted: tuple of str. Names of int32 tensors (B,) or (B, K) that each step leaves
            in the `extra` of its `Cache`; they belong to the token chosen at that step.
        fake_quantization: str or None. How weights are rounded, see `fake_quantize`.
    """

    pad_id: int
    start_id: int
    end_id: int
    max_length: int
    target_vocabulary_size: int | None = None
    source_vocabulary_size: int | None = None
    forbidden_ids: Sequence[int] = ()
    shares_beams: bool = False
    noted: tuple[str, ...] = ()
    fake_quantization: str | None = None

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Maps source ids (B, S) to the memory (B, S, D) and its bool mask (B, S)."""
        ...

    def start_cache(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        max_length: Tensor | int | None,
        beam_size: int | None = None,
    ) -> Any:
        """Creates the cache for the first call of `decode_step`.

        Args:
            memory: float tensor (B, S, D).
            memory_mask: bool tensor (B, S).
            max_length: int or int32 scalar. Number of positions (L). None, which is
                only given if `shares_beams` is true, creates a `GrowingCache`.
            beam_size: int or None. Number of hypotheses (K) per row, which each step
                extends at once; only given if `shares_beams` is true.
        """
        ...

    def decode_step(self, ids: Tensor, index: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Float32 logits (B, V) of the next token, and the cache with this position.

        Args:
            ids: int tensor (B,), or (B, K) if the cache has K hypotheses, with logits
                (B, K, V). The tokens at position `index`.
            index: int32 scalar. 0 for the start token.
            cache: cache from `start_cache` or from the previous step.
        """
        ...

    @staticmethod
    def while_loop(unfinished: Callable, step: Callable, state: tuple) -> tuple:
        """Runs the loop of a search, as `keras.ops.while_loop` does."""
        return ops.while_loop(unfinished, step, state)


class ModelAround:
    """Wraps a searched model; subclasses override some of its methods.

    Args:
        model: SearchedModel.
    """

    def __init__(self, model: SearchedModel):
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
