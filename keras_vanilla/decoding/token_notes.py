"""Values that a search records for each token."""

from typing import Any

from keras import ops

from keras_vanilla._operators import slice_update
from keras_vanilla._types import Tensor
from keras_vanilla.decoding.searched_model import SearchedModel

LOG_PROBS = "log_probs"


def start_notes(model: SearchedModel, shape: tuple) -> dict[str, Tensor]:
    """Creates empty notes.

    Args:
        model: SearchedModel.
        shape: (B, L) or (B, K, L).
    Returns:
        Dict of tensors of that shape: "log_probs", float32, and int32 tensors with the
        names in `model.noted`.
    """
    notes = {name: ops.zeros(shape, dtype="int32") for name in model.noted}
    return {LOG_PROBS: ops.zeros(shape, dtype="float32"), **notes}


def noted(model: SearchedModel, cache: Any) -> dict[str, Tensor]:
    """The values to be noted that a model's step has left in its cache, by name."""
    return {name: cache.extra[name] for name in model.noted}


def with_notes(
    notes: dict[str, Tensor], index: Tensor, new: dict, log_probs: Tensor
) -> dict[str, Tensor]:
    """Adds the notes of one more token of each hypothesis.

    Args:
        notes: dict of tensors (B, L) or (B, K, L), or {}, which is returned as {}.
        index: int32 scalar. The token's position.
        new: dict of the token's notes, (B,) or (B, K); other entries are ignored.
        log_probs: float32 tensor of the same shape.
    """
    new = {**new, LOG_PROBS: log_probs}
    return {name: _written(value, index, new[name]) for name, value in notes.items()}


def _written(values, index, column):
    start = (*(0 for _ in column.shape), index)
    return slice_update(values, start, ops.expand_dims(column, -1))
