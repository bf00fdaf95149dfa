"""Detects loops: the same tokens repeated in a row."""

import numpy as np
from keras import ops

from keras_vanilla._types import Tensor

TIMES = 4  # repeats in a row that count as a loop; three occur in normal text
LONGEST = 16  # tokens in a repeated sequence
NONE = -1  # no token

# Row p - 1 has the places, counted back from the newest token, whose tokens must equal
# those p places before them if one more token would complete a fourth repeat of p.
_SPAN = (TIMES - 1) * LONGEST - 1
_PERIODS = np.arange(1, LONGEST + 1)[:, None]
_COMPARED = np.arange(_SPAN) < (TIMES - 1) * _PERIODS - 1  # (periods, span)
_PLACES = np.where(_COMPARED, np.arange(_SPAN), 0)
_EARLIER = np.where(_COMPARED, np.arange(_SPAN) + _PERIODS, 0)


def looping_tokens(ids: Tensor, index: Tensor) -> Tensor:
    """Finds the tokens that would repeat a sequence for the fourth time in a row.

    Args:
        ids: int32 tensor (R, L). The tokens so far, then any values.
        index: int32 scalar. Number of tokens so far.
    Returns:
        Int32 tensor (R, LONGEST): the token that each length would repeat, or -1.
    """
    back = np.arange(1, _SPAN + LONGEST + 1, dtype="int32")
    newest = ops.take(ids, ops.maximum(index - back, 0), axis=1)  # (R, span + periods)
    shape = (-1, *_PLACES.shape)
    same = ops.equal(
        ops.reshape(ops.take(newest, _PLACES.reshape(-1), axis=1), shape),
        ops.reshape(ops.take(newest, _EARLIER.reshape(-1), axis=1), shape),
    )
    long_enough = ops.greater_equal(index, TIMES * _PERIODS[:, 0].astype("int32") - 1)
    loops = ops.logical_and(ops.all(same, axis=2), long_enough)  # (R, periods)
    return ops.where(loops, newest[:, :LONGEST], NONE)


def repeats(ids: Tensor, pad_id: int) -> Tensor:
    """Tests if each row contains a sequence four times in a row.

    Args:
        ids: int tensor (R, L), padded at the end of each row.
        pad_id: int.
    Returns:
        Bool tensor (R,).
    """
    ids = ops.convert_to_tensor(ids)
    found = ops.zeros(ops.shape(ids)[:1], dtype="bool")
    for period in range(1, LONGEST + 1):
        earlier = ops.pad(ids, ((0, 0), (period, 0)), constant_values=pad_id)
        later = ops.pad(ids, ((0, 0), (0, period)), constant_values=pad_id)
        same = ops.equal(earlier, later) & ops.not_equal(later, pad_id)
        run = ops.cumsum(ops.cast(same, "int32"), axis=1)
        length = (TIMES - 1) * period
        before = ops.pad(run, ((0, 0), (length, 0)))[:, :-length]
        found = found | ops.any(ops.equal(run - before, length), axis=1)
    return found
