"""Loops: sequences that a search does not repeat."""

from dataclasses import dataclass

import numpy as np
from keras import ops

from keras_vanilla._types import Tensor

TIMES = 4  # repeats in a row that count as a loop; three occur in normal text
LONGEST = 16  # tokens in a repeated sequence
NONE = -1  # no token, no text
NUMBER = -2  # the text of target pieces that are part of a number

# Row p - 1 has the places, counted back from the newest token, whose tokens must equal
# those p places before them if one more token would complete a fourth repeat of p.
_SPAN = (TIMES - 1) * LONGEST - 1
_PERIODS = np.arange(1, LONGEST + 1)[:, None]
_COMPARED = np.arange(_SPAN) < (TIMES - 1) * _PERIODS - 1  # (periods, span)
_PLACES = np.where(_COMPARED, np.arange(_SPAN), 0)
_EARLIER = np.where(_COMPARED, np.arange(_SPAN) + _PERIODS, 0)


@dataclass(frozen=True, eq=False)
class LoopGuard:
    """Finds the tokens that would repeat up to 16 tokens for the fourth time in a row.

    A sequence with a number in it may repeat, and so may a sequence of which the source
    repeats each text four times in a row, alone or as part of a sequence. Without
    tables no id is a number, and equal ids of source and target are equal texts.

    Args:
        source_texts: int array (V_source,) or None. A number for the text of each
            source piece, at least 0.
        source_times: int array (V_source,) or None. How often the piece repeats its
            text; four times if "----" has the text "-".
        target_texts: int array (V_target,) or None. The same numbers for the texts of
            target pieces; `NUMBER` for pieces that have a digit or another numeral, or
            that can begin one, as bytes can.
    """

    source_texts: np.ndarray | None = None
    source_times: np.ndarray | None = None
    target_texts: np.ndarray | None = None

    def repeated_texts(self, source_ids: Tensor, pad_id: int) -> Tensor:
        """Finds the texts that each source repeats.

        Args:
            source_ids: int tensor (B, S), padded at the end of each row.
            pad_id: int.
        Returns:
            Int32 tensor (B, S): the texts that are repeated, -1 for others.
        """
        ids = ops.cast(source_ids, "int32")
        real = ops.not_equal(ids, pad_id)
        texts = ops.where(real, _looked_up(self.source_texts, ids, ids), NONE)
        repeated = ops.zeros_like(real)
        for period in range(1, LONGEST + 1):
            same = ops.equal(_earlier(texts, period), texts) & real
            length = (TIMES - 1) * period
            fourth = ops.equal(_counted(same, length), length)
            # The last repeat ends here, or up to `period` - 1 tokens later.
            later = ops.pad(fourth, ((0, 0), (0, period - 1)))
            repeated |= ops.greater(_counted(later, period)[:, period - 1 :], 0)
        times = _looked_up(self.source_times, ids, ops.ones_like(ids))
        total, same = times, real
        for back in range(1, TIMES):
            same &= ops.equal(_earlier(texts, back), texts)
            total += ops.where(same, _earlier(times, back), 0)
        repeated |= ops.greater_equal(total, TIMES) & real
        return ops.where(repeated, texts, NONE)

    def looping_tokens(self, ids: Tensor, index: Tensor, repeated: Tensor) -> Tensor:
        """Finds the tokens that must not follow.

        Args:
            ids: int32 tensor (B, K, L). The tokens so far, then any values.
            index: int32 scalar. Number of tokens so far.
            repeated: result of `repeated_texts`.
        Returns:
            Int32 tensor (B, K, LONGEST): the token that each length would repeat, -1 if
            it may follow.
        """
        back = np.arange(1, _SPAN + LONGEST + 1, dtype="int32")
        newest = ops.take(ids, ops.maximum(index - back, 0), axis=2)
        shape = (*ops.shape(ids)[:2], *_PLACES.shape)
        same = ops.equal(
            ops.reshape(ops.take(newest, _PLACES.reshape(-1), axis=2), shape),
            ops.reshape(ops.take(newest, _EARLIER.reshape(-1), axis=2), shape),
        )
        long_enough = ops.greater_equal(
            index, TIMES * _PERIODS[:, 0].astype("int32") - 1
        )
        loops = ops.all(same, axis=3) & long_enough  # (B, K, periods)
        newest = newest[:, :, :LONGEST]
        texts = _looked_up(self.target_texts, newest, newest)
        is_repeated = ops.equal(ops.expand_dims(texts, 3), repeated[:, None, None, :])
        is_new = ~ops.any(is_repeated, axis=3)
        loops &= _in_sequence(is_new) & ~_in_sequence(ops.equal(texts, NUMBER))
        return ops.where(loops, newest, NONE)


def _looked_up(table, ids, without):
    """The values of a table, int32; `without` if there is no table."""
    return without if table is None else ops.cast(ops.take(table, ids, axis=0), "int32")


def _in_sequence(flags):
    """(B, K, N): True if one of the newest 1, 2, ..., N flags is True."""
    return ops.greater(ops.cumsum(ops.cast(flags, "int32"), axis=2), 0)


def _earlier(values, count, first=NONE):
    """(B, S): the values `count` positions before."""
    shifted = ops.pad(values, ((0, 0), (count, 0)), constant_values=first)
    return shifted[:, :-count]


def _counted(flags, width):
    """(B, S): how many of the last `width` flags are True."""
    count = ops.cumsum(ops.cast(flags, "int32"), axis=1)
    return count - _earlier(count, width, 0)
