"""`keras_vanilla.translation.loops` in a graph, for the bytes of a text."""

import numpy as np
import tensorflow as tf

from keras_vanilla.translation.loops import (
    BEGINS_CHARACTER,
    IS_LETTER,
    LONGEST,
    TIMES,
)

_PERIODS = np.arange(2, LONGEST + 1, dtype="int32")[:, None]  # (P, 1)
_NOWHERE = 2**31 - 1


def without_loops(
    text: tf.Tensor, length: tf.Tensor, ends: tf.Tensor, source: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Removes phrases that are repeated more than three times in a row.

    Most texts have no loops, so the test for loops is fast. Excess repetitions are then
    removed one by one.

    Args:
        text: uint8 tensor (M,), UTF-8 padded with zeros.
        length: int32 scalar. Number of bytes of the text.
        ends: int32 tensor (L,), positions in the text.
        source: uint8 tensor (m,), the source text padded with zeros. If it has a loop
            itself, the translation is not changed.
    Returns:
        Uint8 tensor (M,), and the new values of `ends`.
    """
    size, positions = text.shape[0], tf.range(1, source.shape[0] + 1)
    is_text = tf.cast(source, tf.int32) > 0
    source = _ended(source[: tf.reduce_max(tf.where(is_text, positions, 0))])
    text = _ended(text[:length])

    def cut(_, text, ends):
        period, end = _first_loop(text)
        may_loop = _first_loop(source)[0] > 0
        period = tf.where(may_loop, 0, period)
        begin = end - period
        ends = ends - tf.clip_by_value(ends - begin, 0, period)
        text = tf.concat([text[:begin], text[end:]], axis=0)
        return period > 0, text, ends

    state = _may_have_loops(text), text, ends
    shapes = tf.TensorShape([]), tf.TensorShape([None]), ends.shape
    _, text, ends = tf.while_loop(lambda has_loop, *_: has_loop, cut, state, shapes)
    text = tf.pad(text[:-1], [[0, size + 1 - tf.size(text)]])
    # Compiled models, also those of browsers, cannot read the loop's own tensors.
    ends = tf.maximum(ends, 0)
    return tf.cast(tf.reshape(text, [size]), tf.uint8), ends


def _ended(text):
    """Returns the bytes as int32, with a space after the last word too."""
    return tf.concat([tf.cast(text, tf.int32), [ord(" ")]], axis=0)


def _may_have_loops(text):
    """Returns True if a unit occurs often enough anywhere; False for most texts."""
    same = tf.reduce_sum(tf.cast(_same_as_earlier(text), tf.int32), axis=1)
    return tf.reduce_any(same >= (TIMES - 1) * _PERIODS[:, 0])


def _same_as_earlier(text):
    """Returns bool (P, n), True if a byte equals that one unit earlier."""
    earlier = tf.range(tf.size(text)) - _PERIODS
    same = text == tf.gather(text, tf.maximum(earlier, 0))
    return same & (earlier >= 0)


def _first_loop(text):
    """Returns the length of the shortest repeated unit, and the end of its last copy.

    Both are 0 if there is no loop.
    """
    size = tf.size(text)
    ends = tf.range(1, size + 1)  # (n,), the end of each byte
    same = _counts(tf.cast(_same_as_earlier(text), tf.int32))  # (P, n + 1)
    needed = (TIMES - 1) * _PERIODS
    rows = tf.range(len(_PERIODS))[:, None] * (size + 1)
    before = tf.gather(tf.reshape(same, [-1]), rows + tf.maximum(ends - needed, 0))
    loops = (same[:, 1:] - before == needed) & (ends >= TIMES * _PERIODS)
    for table, least in ((IS_LETTER, 1), (BEGINS_CHARACTER, 2)):
        count = _counts(tf.gather(table.astype("int32"), text)[None])[0]  # (n + 1,)
        in_unit = count[1:] - tf.gather(count, tf.maximum(ends - _PERIODS, 0))
        loops &= in_unit >= least
    # The first of the shortest, as in Python.
    indices = tf.range(len(_PERIODS) * size)
    first = tf.reduce_min(tf.where(tf.reshape(loops, [-1]), indices, _NOWHERE))
    has_loop = first < _NOWHERE
    period, end = 2 + first // size, 1 + first % size
    return tf.where(has_loop, period, 0), tf.where(has_loop, end, 0)


def _counts(values):
    """Sums the values before each position: int32 (rows, n) -> (rows, n + 1)."""
    return tf.pad(tf.cumsum(values, axis=1), [[0, 0], [1, 0]])
