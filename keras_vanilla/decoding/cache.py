"""The cache that the steps of a search read and write."""

from typing import NamedTuple

from keras_vanilla._types import Tensor


class Cache(NamedTuple):
    """The state that a Transformer keeps between steps.

    Fields:
        past: tuple of dicts, one per decoder layer: "self_key" and "self_value"
            (B, N, L, H), to which each step adds its position; (B, N, L K, H) if one
            cache holds the K hypotheses of a row.
        fixed: tuple of dicts, one per decoder layer: "cross_key" and "cross_value"
            (B, N, S, H), which steps do not change.
        memory_mask: bool tensor (B, S).
        ancestors: bool tensor (B, K, L K) if one cache holds K hypotheses: True for the
            positions of each hypothesis. Otherwise ().
        removed: int32 scalar, the number of earlier positions that are no longer in the
            cache, because they belong to no hypothesis. Otherwise ().
        extra: dict of tensors, batch first. State of a model that wraps this one.
    """

    past: tuple
    fixed: tuple
    memory_mask: Tensor
    ancestors: Tensor | tuple = ()
    removed: Tensor | tuple = ()
    extra: dict[str, Tensor] = {}

    @property
    def is_shared(self) -> bool:
        """True if one cache holds all hypotheses of a row."""
        return not isinstance(self.ancestors, tuple)

    @property
    def beam_size(self) -> int:
        """The number of hypotheses per row (K)."""
        return self.ancestors.shape[1] if self.is_shared else 1

    def position_of(self, index: Tensor | int) -> Tensor | int:
        """The position in the cache (L) of the step `index`."""
        return index if isinstance(self.removed, tuple) else index - self.removed


class GrowingCache(Cache):
    """A cache with no empty positions: L is the number of steps so far.

    A cache of fixed length is copied and attended to completely at each step, although
    most of it is empty. This cache avoids that, but its shapes change at each step,
    which XLA, JAX and phones do not support.
    """
