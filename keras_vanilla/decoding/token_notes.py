"""What a search notes of each token that it chooses."""

from typing import Any

from keras import ops

from keras_vanilla._types import Tensor

LOG_PROBS = "log_probs"


def start_notes(model: Any, shape: tuple) -> dict[str, Tensor]:
    """Notes of no token yet.

    Args:
        model: as the search takes it. `noted`, if it has that, names int32 tensors
            that its step leaves in the cache, one number for each hypothesis; they
            belong to the token that is chosen after the step.
        shape: (B, L) or (B, K, L).
    Returns:
        Dict of tensors of that shape: "log_probs", float32, and int32 tensors with the
        names that the model gives.
    """
    notes = {name: ops.zeros(shape, dtype="int32") for name in noted(model)}
    return {LOG_PROBS: ops.zeros(shape, dtype="float32"), **notes}


def noted(model: Any) -> tuple[str, ...]:
    """The names of what a model's step leaves in the cache to be noted."""
    return getattr(model, "noted", ())


def with_notes(
    notes: dict[str, Tensor], index: Tensor, new: dict, log_probs: Tensor
) -> dict[str, Tensor]:
    """Notes with those of one more token of each hypothesis.

    Args:
        notes: dict of tensors (B, L) or (B, K, L), or {}, which stays.
        index: int32 scalar. The token's position.
        new: dict of the token's notes, (B,) or (B, K); others in it are not used.
        log_probs: float32 tensor of that shape.
    """
    new = {**new, LOG_PROBS: log_probs}
    return {name: _written(value, index, new[name]) for name, value in notes.items()}


def _written(values, index, column):
    start = (*(0 for _ in column.shape), index)
    return ops.slice_update(values, start, ops.expand_dims(column, -1))
