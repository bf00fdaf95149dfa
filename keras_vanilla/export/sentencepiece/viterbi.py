"""SentencePiece's unigram segmentation by the Viterbi algorithm in a graph."""

import numpy as np
import tensorflow as tf

from keras_vanilla._operators import slice_update
from keras_vanilla.export.sentencepiece.pointer_jumping import follow_jumps
from keras_vanilla.export.sentencepiece.trie import ByteTrie
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import LONGEST_CHARACTER

BLOCK = 8  # bytes per step of the loop, which has an overhead per step


class Segmenter:
    """Finds the segmentation with the highest sum of scores.

        best(e) = max over pieces from byte s to e of best(s) + score(piece)

    computed in float32. If sums are equal, the longest last piece is chosen. Both are
    as in `sentencepiece`, whose scores often tie.

    Args:
        model: UnigramModel.
    Call arguments:
        text_bytes: int32 tensor (n + 1,), normalised text and a zero.
    Returns:
        Int32 tensors (p,): the pieces, and their ends in the text. Each byte of an
        unknown character is a byte piece, or unknown.
    Source: Kudo 2018, "Subword Regularization", section 3.2.
    """

    def __init__(self, model: UnigramModel):
        self._unknown, self._byte_ids = model.unknown_id, model.byte_ids
        self._unknown_score = model.unknown_score
        scores = model.segment_scores()
        scores[model.unknown_id] = -np.inf  # no piece
        # As integers, because the converter would quantise a large table of floats.
        self._score_bits = scores.view("int32")
        ids = model.ids_of("NORMAL", "USER_DEFINED")
        pieces = {model.pieces[id_]: id_ for id_ in ids}
        self._trie = ByteTrie.build(pieces, missing=model.unknown_id)
        self._longest = max(LONGEST_CHARACTER, *map(len, pieces))

    def __call__(self, text_bytes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        slots = self._trie.walk(text_bytes, self._longest, LONGEST_CHARACTER)
        pieces = self._trie.values(slots)  # (d, n + 1), by length and first byte
        lengths = tf.range(1, tf.shape(pieces)[0] + 1)
        scores = self._scores(pieces, lengths, text_bytes)
        lasts = self._last_lengths(scores, lengths, self._best(scores))
        return self._trace(text_bytes, pieces, lasts)

    def _scores(self, pieces, lengths, text_bytes):
        """Returns float32 scores (d, n + 1), -inf where there is no piece."""
        characters = tf.gather(_CHARACTERS, text_bytes)
        # An unknown piece does not extend beyond its character.
        within = lengths[:, None] <= characters
        return tf.where(
            (pieces == self._unknown) & within,
            self._unknown_score,
            tf.bitcast(tf.gather(self._score_bits, pieces), tf.float32),
        )

    def _best(self, scores):
        """Returns the highest sums of scores to each byte, float32 (n + 1 or more,)."""
        depth, size = tf.unstack(tf.shape(scores))
        count, width = size // BLOCK + 1, depth + 1 + BLOCK
        padding = [[0, count * BLOCK - size], [1, 0]]
        scores = tf.pad(tf.transpose(scores), padding, constant_values=-np.inf)
        scores = tf.reshape(scores, [count, BLOCK, depth + 1])
        scores = _staggered(scores, -np.inf)  # by block, first byte and end in it

        def step(block, best):
            position = block * BLOCK
            known = tf.slice(best, [position], [width])
            for begin, row in enumerate(tf.unstack(tf.gather(scores, block), BLOCK)):
                known = tf.maximum(known, tf.slice(known, [begin], [1]) + row)
            return block + 1, slice_update(best, [position], known)

        best = tf.concat([[0.0], tf.fill([count * BLOCK + width], -np.inf)], axis=0)
        return tf.while_loop(lambda block, _: block < count, step, (0, best))[1]

    def _last_lengths(self, scores, lengths, best):
        """Returns the size of the last piece on the best path to each byte."""
        size = tf.shape(scores)[1]
        ends = tf.range(size) + lengths[:, None]
        is_best = tf.slice(best, [0], [size]) + scores == tf.gather(best, ends)
        best_lengths = tf.where(is_best, lengths[:, None], 0)
        best_lengths = tf.expand_dims(best_lengths, 0)
        best_lengths = _staggered(best_lengths, 0)  # by length and last byte
        return tf.slice(tf.reduce_max(best_lengths, axis=[0, 1]), [0], [size - 1])

    def _trace(self, text_bytes, pieces, lengths):
        """Returns the pieces on the best path to the last byte, and their ends."""
        size = tf.size(text_bytes)
        ends = tf.range(1, size)
        flat = tf.reshape(pieces, [-1])
        pieces = tf.gather(flat, (lengths - 1) * size + ends - lengths)
        unknown = pieces == self._unknown
        byte_ids = tf.gather(self._byte_ids, text_bytes[:-1])
        pieces = tf.where(unknown, byte_ids, pieces)
        begins = ends - tf.where(unknown, 1, lengths)
        jumps = tf.concat([[0], begins], axis=0)
        path = follow_jumps(jumps, size - 1, tf.range(size - 1, -1, -1))
        ends = path[path > 0]
        return tf.gather(pieces, ends - 1), ends


def _staggered(blocks, empty):
    """Shifts row r of each block by r columns: (b, r, c) -> (b, r, c + r)."""
    count, rows, columns = tf.unstack(tf.shape(blocks))
    width = rows + columns
    blocks = tf.pad(blocks, [[0, 0], [0, 0], [0, rows + 1]], constant_values=empty)
    flat = tf.reshape(blocks, [count, rows * (width + 1)])
    flat = tf.slice(flat, [0, 0], [count, rows * width])
    return tf.reshape(flat, [count, rows, width])


_CHARACTERS = np.select(
    [np.arange(256) < limit for limit in (0x80, 0xC0, 0xE0, 0xF0, 0xF8)],
    [1, 0, 2, 3, 4],
).astype("int32")  # number of bytes of a character by its first byte; 0 for others
