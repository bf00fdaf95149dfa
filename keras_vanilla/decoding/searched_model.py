"""What a search needs of a model, and what the model keeps between two steps."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from keras import ops

from keras_vanilla._types import Tensor


class Cache(NamedTuple):
    """What a Transformer keeps between two steps.

    Fields:
        past: tuple of dicts, one for each decoder layer: "self_key" and "self_value"
            (B, N, L, H), to which each step adds its position.
        fixed: tuple of dicts, one for each decoder layer: "cross_key" and "cross_value"
            (B, N, S, H), which no step changes.
        memory_mask: bool tensor (B, S).
        ancestors: bool tensor (B, K, L K), where one cache holds the K hypotheses of a
            row: which positions belong to each. Otherwise ().
        extra: dict of tensors, batch first: what a model around this one keeps.
    """

    past: tuple
    fixed: tuple
    memory_mask: Tensor
    ancestors: Tensor | tuple = ()
    extra: dict[str, Tensor] = {}

    @property
    def is_shared(self) -> bool:
        """Whether one cache holds all hypotheses of a row."""
        return not isinstance(self.ancestors, tuple)

    @property
    def beam_size(self) -> int:
        """The number of hypotheses of each row (K)."""
        return self.ancestors.shape[1] if self.is_shared else 1


class GrowingCache(Cache):
    """A cache with no empty positions: L is the number of steps so far.

    A cache of full length is copied, and attended to, from end to end at each step,
    although most of it is empty; this one is not. Its shapes change from step to step,
    which XLA, JAX and phones do not take.
    """


class SearchedModel(Protocol):
    """What a search needs of a model, as `Transformer` and `Ensemble` have it.

    A model of your own inherits from this class and defines `encode`, `start_cache` and
    `decode_step`. Its cache may be any structure of tensors, batch first.

    Attributes:
        pad_id, start_id, end_id: int.
        max_length: int. Longest output in tokens, the end included.
        target_vocabulary_size: int or None. For prefixes, which are checked by it.
        source_vocabulary_size: int or None. With it, other source ids are refused.
        shares_beams: bool. Whether `start_cache` and `decode_step` take K hypotheses of
            each row at once, and the cache is a `Cache` with `ancestors`.
        noted: tuple of str. Names of int32 tensors (B,) or (B, K) that each step leaves
            in the `extra` of its `Cache`; they belong to the token that is chosen then.
        fake_quantization: str or None. How weights are rounded, see `fake_quantize`.
    """

    pad_id: int
    start_id: int
    end_id: int
    max_length: int
    target_vocabulary_size: int | None = None
    source_vocabulary_size: int | None = None
    shares_beams: bool = False
    noted: tuple[str, ...] = ()
    fake_quantization: str | None = None

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """The memory (B, S, D) of source ids (B, S), and its mask, bool (B, S)."""
        ...

    def start_cache(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        max_length: Tensor | int,
        beam_size: int | None = None,
    ) -> Any:
        """What `decode_step` needs of the past, before the first step.

        Args:
            memory: float tensor (B, S, D).
            memory_mask: bool tensor (B, S).
            max_length: int or int32 scalar. Number of positions (L).
            beam_size: int or None. Number of hypotheses (K) of each row, which each
                step extends at once; given only where `shares_beams`.
        """
        ...

    def decode_step(self, ids: Tensor, index: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Float32 logits (B, V) of the next token, and the cache with this position.

        Args:
            ids: int tensor (B,), or (B, K) where the cache has K hypotheses; then the
                logits are (B, K, V). The tokens at position `index`.
            index: int32 scalar. 0 for the start token.
            cache: of `start_cache`, or of the step before.
        """
        ...

    @staticmethod
    def while_loop(unfinished: Callable, step: Callable, state: tuple) -> tuple:
        """The loop of a search, as `keras.ops.while_loop`."""
        return ops.while_loop(unfinished, step, state)


class ModelAround:
    """A searched model that is another one but for what a subclass defines.

    Args:
        model: SearchedModel.
    """

    def __init__(self, model: SearchedModel):
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
