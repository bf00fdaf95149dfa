"""SentencePiece's unigram segmentation, in a TensorFlow graph."""

import numpy as np
import tensorflow as tf
from keras import ops

from keras_vanilla.export.byte_trie import ByteTrie
from keras_vanilla.export.unigram_model import UnigramModel
from keras_vanilla.export.utf8 import LONGEST_CHARACTER


class Segmenter:
    """Finds the pieces of the highest sum of scores.

        best(e) = max over pieces from byte s to e of best(s) + score(piece)

    in float32; of equal sums the longest last piece wins. Both as in `sentencepiece`,
    whose scores tie often.

    Args:
        model: UnigramModel.
    Call arguments:
        octets: uint8 tensor (capacity,), normalised text.
        length: int32 tensor (). The bytes that are text.
    Returns:
        Int32 tensor (capacity,), the last step of the best way to each byte; `step_to`
        reads it.
    Source: Kudo 2018, "Subword Regularization", section 3.2.
    """

    def __init__(self, model: UnigramModel):
        self._unknown, self._byte_ids = model.unknown_id, model.byte_ids
        self._unknown_score = model.unknown_score
        scores = model.segment_scores()
        scores[model.unknown_id] = -np.inf  # of what is no piece
        # As integers: the converter would quantise a large table of floats.
        self._score_bits = scores.view("int32")
        ids = model.ids_of("NORMAL", "USER_DEFINED")
        pieces = {model.pieces[id_]: id_ for id_ in ids}
        self._trie = ByteTrie.build(pieces, missing=model.unknown_id)
        self._longest = max(LONGEST_CHARACTER, *map(len, pieces))

    def __call__(self, octets, length):
        lengths = tf.range(1, self._longest + 1)

        def step(place, character, slots, best, path):
            """Ends pieces with one more byte; number k of `slots` began k bytes ago."""
            octet = tf.cast(tf.gather(octets, place), tf.int32)
            character = character * tf.gather(_CONTINUES, octet) + 1
            slots = self._trie.child(slots, octet)
            pieces = self._trie.values(slots)
            scores = tf.where(
                (pieces == self._unknown) & (lengths == character),
                self._unknown_score,
                tf.bitcast(tf.gather(self._score_bits, pieces), tf.float32),
            )
            sums = best + scores
            top = tf.reduce_max(sums)
            length = tf.reduce_max(tf.where(sums == top, lengths, 0))
            last = self._pack(tf.gather(pieces, length - 1), length)
            return (
                place + 1,
                character,
                tf.concat([[self._trie.root], slots[:-1]], axis=0),
                tf.concat([[top], best[:-1]], axis=0),
                ops.slice_update(path, [place], [last]),
            )

        state = self._start(octets.shape, length)
        return tf.while_loop(lambda place, *_: place < length, step, state)[-1]

    def _start(self, shape, length):
        """The loop's state: the text's beginning alone may begin a piece."""
        others = self._longest - 1
        slots = [self._trie.root] + others * [self._trie.dead]
        best = [0.0] + others * [-np.inf]
        path = tf.fill(shape, 0 * length)  # zeros alone would lie in the file
        return (*map(tf.constant, (0, 0, slots, best)), path)

    def step_to(self, end, path, octets):
        """The piece that ends before byte `end`, and where it begins.

        An unknown character goes byte by byte: each is a byte piece, or unknown.
        """
        packed, octet = tf.gather(path, end - 1), tf.gather(octets, end - 1)
        piece = packed // (self._longest + 1)
        unknown = piece == self._unknown
        byte_id = tf.gather(self._byte_ids, tf.cast(octet, tf.int32))
        length = tf.where(unknown, 1, packed % (self._longest + 1))
        return tf.where(unknown, byte_id, piece), end - length

    def _pack(self, piece, length):
        # In one number: a loop copies its state at each step.
        return piece * (self._longest + 1) + length


_CONTINUES = (np.arange(256) // 64 == 2).astype("int32")  # bytes inside a character
