"""The end of a hypothesis: `end_id`, or its longest length."""

from collections.abc import Sequence
from typing import Any

from keras import ops

from keras_vanilla._checks import check_integer
from keras_vanilla._types import Tensor

EXTRA_TOKENS = 50  # Vaswani et al. 2017, section 6.1: at most S + 50


def longest_output(source_length: Tensor | int, most: int) -> Tensor | int:
    """The smaller of S + 50 and `most`.

    Args:
        source_length: int, or an int32 tensor of any shape.
        most: int.
    """
    longest = source_length + EXTRA_TOKENS
    return (
        min(longest, most) if isinstance(longest, int) else ops.minimum(longest, most)
    )


def output_length(
    model: Any, source_length: Tensor | int, max_length: int | None = None
) -> Tensor | int:
    """The number of tokens a search may produce, including the end.

    Args:
        model: object with `max_length`.
        source_length: int, or an int32 tensor of any shape.
        max_length: int or None. The limit that the caller gave; None means S + 50.
    Raises:
        ValueError: if `max_length` is below 1 or above the model's.
    """
    if max_length is None:
        return longest_output(source_length, model.max_length)
    length = check_integer("max_length", max_length, 1)
    if length > model.max_length:
        raise ValueError(
            f"`max_length` must be at most the model's, {model.max_length}. "
            f"Received: {max_length}"
        )
    return length


def ends_here(tokens: Tensor, count: Tensor, limits: Tensor, end_id: int) -> Tensor:
    """Tests if each hypothesis ends with its newest token.

    Args:
        tokens: int32 tensor (B,) or (B, K). The newest tokens.
        count: int32 scalar. Number of tokens so far, including the newest.
        limits: int32 tensor (B,) or int. Longest length of each row.
        end_id: int.
    Returns:
        Bool tensor of the shape of `tokens`.
    """
    at_limit = ops.greater_equal(count, limits)
    if len(tokens.shape) > 1:
        at_limit = ops.expand_dims(at_limit, -1)
    return ops.equal(tokens, end_id) | at_limit


def until_end(ids: Sequence[int], model: Any) -> list[int]:
    """The ids up to the first `end_id`; without one, the ids before the final pads.

    Args:
        ids: list of int.
        model: object with `end_id` and `pad_id`.
    """
    ids = list(ids)
    if model.end_id in ids:
        return ids[: ids.index(model.end_id) + 1]
    length = len(ids)
    while length and ids[length - 1] == model.pad_id:
        length -= 1
    return ids[:length]
