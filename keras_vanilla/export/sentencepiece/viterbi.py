"""SentencePiece's unigram segmentation by the Viterbi algorithm in a graph."""

import numpy as np
from keras import ops

from keras_vanilla._operators import current_operators
from keras_vanilla._types import Tensor
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
        length: int32 tensor (). Number of bytes of the text, at most n.
    Returns:
        Int32 tensors (p,): the pieces, and their ends in the text. Each byte of an
        unknown character is a byte piece, or unknown. Int32 tensor (), the number of
        pieces; what follows them has no meaning.
    Source: Kudo 2018, "Subword Regularization", section 3.2.
    """

    def __init__(self, model: UnigramModel):
        self._unknown, self._byte_ids = model.unknown_id, model.byte_ids
        self._unknown_score = model.unknown_score
        scores = model.segment_scores()
        scores[model.unknown_id] = -np.inf  # no piece
        # As integers, because the converter would quantise a large table of floats.
        self._score_bits = scores.view("int32")[:, None]
        ids = model.ids_of("NORMAL", "USER_DEFINED")
        pieces = {model.pieces[id_]: id_ for id_ in ids}
        self._trie = ByteTrie.build(pieces, missing=model.unknown_id)
        self._longest = max(LONGEST_CHARACTER, *map(len, pieces))

    def __call__(
        self, text_bytes: Tensor, length: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        slots = self._trie.walk(text_bytes, self._longest, LONGEST_CHARACTER)
        pieces = self._trie.values(slots)  # (d, n + 1), by length and first byte
        lengths = ops.arange(1, ops.shape(pieces)[0] + 1, dtype="int32")
        scores = self._scores(pieces, lengths, text_bytes)
        lasts = self._last_lengths(scores, lengths, self._best(scores, length))
        return self._trace(text_bytes, length, pieces, lasts)

    def _scores(self, pieces, lengths, text_bytes):
        """Returns float32 scores (d, n + 1), -inf where there is no piece."""
        gather = current_operators().gather
        characters = gather(_CHARACTERS, text_bytes)
        # An unknown piece does not extend beyond its character.
        within = lengths[:, None] <= characters
        scores = ops.view(gather(self._score_bits, pieces), "float32")
        return ops.where(
            (pieces == self._unknown) & within,
            self._unknown_score,
            ops.reshape(scores, ops.shape(pieces)),
        )

    def _best(self, scores, length):
        """Returns the highest sums of scores to each byte, float32 (n + 1 or more,)."""
        operators = current_operators()
        depth, size = ops.shape(scores)
        count, width = size // BLOCK + 1, depth + 1 + BLOCK
        padding = [[0, count * BLOCK - size], [1, 0]]
        scores = ops.pad(ops.transpose(scores), padding, constant_values=-np.inf)
        scores = ops.reshape(scores, (count, BLOCK, depth + 1))
        scores = _staggered(scores, -np.inf)  # by block, first byte and end in it

        def step(block, best):
            position = block * BLOCK
            known = ops.slice(best, [position], [width])
            rows = ops.unstack(operators.gather(scores, block), BLOCK)
            for begin, row in enumerate(rows):
                known = ops.maximum(known, ops.slice(known, [begin], [1]) + row)
            return block + 1, operators.slice_update(best, [position], known)

        padding = [[0, count * BLOCK + width]]
        best = ops.pad(ops.zeros((1,)), padding, constant_values=-np.inf)
        state = (0, best)
        return ops.while_loop(lambda block, _: block * BLOCK < length, step, state)[1]

    def _last_lengths(self, scores, lengths, best):
        """Returns the size of the last piece on the best path to each byte."""
        size = ops.shape(scores)[1]
        ends = ops.arange(size, dtype="int32") + lengths[:, None]
        sums = ops.slice(best, [0], [size]) + scores
        is_best = sums == current_operators().gather(best, ends)
        best_lengths = ops.where(is_best, lengths[:, None], 0)
        best_lengths = ops.expand_dims(best_lengths, 0)
        best_lengths = _staggered(best_lengths, 0)  # by length and last byte
        return ops.slice(ops.max(best_lengths, axis=(0, 1)), [0], [size - 1])

    def _trace(self, text_bytes, length, pieces, lengths):
        """Returns the pieces on the best path to the last byte, and their ends."""
        operators = current_operators()
        (size,) = ops.shape(text_bytes)
        ends = ops.arange(1, size, dtype="int32")
        flat = ops.reshape(pieces, (-1,))
        pieces = operators.gather(flat, (lengths - 1) * size + ends - lengths)
        unknown = pieces == self._unknown
        byte_ids = operators.gather(self._byte_ids, text_bytes[:-1])
        pieces = ops.where(unknown, byte_ids, pieces)
        begins = ends - ops.where(unknown, 1, lengths)
        jumps = ops.pad(begins, [[1, 0]])
        path = follow_jumps(jumps, length, ops.arange(size, dtype="int32"))
        count = ops.sum(ops.cast(path > 0, "int32"))
        numbers = ops.arange(operators.size_for(count, size - 1), dtype="int32")
        ends = operators.gather(path, count - 1 - numbers)
        return operators.gather(pieces, ends - 1), ends, count


def _staggered(blocks, empty):
    """Shifts row r of each block by r columns: (b, r, c) -> (b, r, c + r)."""
    count, rows, columns = ops.shape(blocks)
    width = rows + columns
    blocks = ops.pad(blocks, [[0, 0], [0, 0], [0, rows + 1]], constant_values=empty)
    flat = ops.reshape(blocks, (count, rows * (width + 1)))
    flat = ops.slice(flat, [0, 0], [count, rows * width])
    return ops.reshape(flat, (count, rows, width))


_CHARACTERS = np.select(
    [np.arange(256) < limit for limit in (0x80, 0xC0, 0xE0, 0xF0, 0xF8)],
    [1, 0, 2, 3, 4],
).astype("int32")  # number of bytes of a character by its first byte; 0 for others
