"""How long a search may go on."""

from keras import ops


def output_length(model, source_length, max_length=None):
    """The number of tokens a search may produce, its end included.

    Args:
        model: has `max_length`.
        source_length: int, or an int32 tensor of any shape.
        max_length: int or None, what the caller asked for.
    Raises:
        ValueError: if `max_length` is below 1 or above the model's.
    """
    if max_length is not None:
        if not 1 <= max_length <= model.max_length:
            raise ValueError(
                "`max_length` must be at least 1 and at most the model's, "
                f"{model.max_length}. Received: {max_length}"
            )
        return max_length
    longest = source_length + 50
    if isinstance(longest, int):
        return min(longest, model.max_length)
    return ops.minimum(longest, model.max_length)


def row_limits(model, memory_mask, max_length=None):
    """The longest output of a batch, and of each of its rows.

    A row's own limit follows from its own source, whatever that is padded to.

    Args:
        model: has `max_length`.
        memory_mask: bool tensor (B, S).
        max_length: int or None, what the caller asked for.
    Returns:
        Int (or int32 scalar), and an int32 tensor (B,) or the same int.
    Raises:
        ValueError: if `max_length` is below 1 or above the model's.
    """
    own_lengths = ops.sum(ops.cast(memory_mask, "int32"), axis=1)
    return (
        output_length(model, ops.shape(memory_mask)[1], max_length),
        output_length(model, own_lengths, max_length),
    )
