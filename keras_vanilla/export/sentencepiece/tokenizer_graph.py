"""SentencePiece's text to ids and back, of TensorFlow Lite's builtin operators."""

import numpy as np
import tensorflow as tf
from keras import ops

from keras_vanilla.export.sentencepiece.normalizer import Normalizer
from keras_vanilla.export.sentencepiece.surfaces import Surfaces
from keras_vanilla.export.sentencepiece.trie import FREE
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import LONGEST_CHARACTER
from keras_vanilla.export.sentencepiece.viterbi import Segmenter


class TextEncoder:
    """Maps the bytes of a text to the ids that `sentencepiece` gives it.

    A text with more ids than `max_ids` gives the first of them, without `end_id`; their
    true number tells. A malformed byte counts as U+FFFD. The scores are added in
    float32: a runtime must not compute this part in float16.

    Args:
        model_bytes: bytes of a SentencePiece unigram model.
        max_bytes: int. Length of the input, at least 1.
        max_ids: int. Length of the output, at least 1.
        end_id: int. Follows the last piece.
        pad_id: int. Fills up the ids.
        piece_ids: int array (P,) or None. The id of each SentencePiece piece in a
            vocabulary of another order; None means SentencePiece's own.
    Call arguments:
        text: uint8 tensor (max_bytes,). UTF-8 that ends with the last byte but 0.
    Returns:
        Int32 tensor (max_ids,), and int32 tensor (), the number of ids with `end_id`.
    Raises:
        ValueError: if the bytes are no SentencePiece model, it is not unigram, writes
            spaces behind words or rewrites decoded text, or `piece_ids` are not an id
            for each piece.
    """

    def __init__(self, model_bytes, max_bytes, max_ids, end_id, pad_id, piece_ids=None):
        model = UnigramModel(model_bytes)
        self.max_bytes, self.max_ids = max_bytes, max_ids
        self._empty = [end_id] + (max_ids - 1) * [pad_id]
        self._unknown = model.unknown_id
        self._piece_ids = _checked(piece_ids, model)
        self._normalize = Normalizer(model)
        self._segment = Segmenter(model)

    def __call__(self, text):
        octets = tf.cast(text, tf.int32)
        places = tf.range(self.max_bytes)
        length = tf.reduce_max(tf.where(octets != 0, places + 1, 0))
        # 255 is kept by the tries; 254 is as malformed.
        octets = tf.pad(tf.minimum(octets, FREE - 1), [[0, LONGEST_CHARACTER]])
        octets = self._normalize(octets[: length + LONGEST_CHARACTER])
        return self._collect(self._segment(octets))

    def _collect(self, pieces):
        unknown = tf.cast(pieces == self._unknown, tf.int32)
        # Unknown characters side by side are one.
        repeated = unknown * tf.pad(unknown, [[1, 0]])[:-1]
        ids = self._ids(pieces[repeated == 0])
        padded = tf.concat([ids, self._empty], axis=0)
        return tf.slice(padded, [0], [self.max_ids]), tf.size(ids) + 1

    def _ids(self, pieces):
        return pieces if self._piece_ids is None else tf.gather(self._piece_ids, pieces)


class TextDecoder:
    """Maps ids to the bytes of the text that `sentencepiece` makes of them.

    What follows the first `end_id` vanishes, and so do control pieces and ids that no
    piece has.

    Args:
        model_bytes: bytes of a SentencePiece unigram model.
        max_ids: int. Length of the input, at least 1.
        end_id: int. Ends the text.
        piece_ids: int array (P,) or None, as in `TextEncoder`. An id that pieces share
            is written as the unknown one of them, or else the first.
    Call arguments:
        ids: int32 tensor (max_ids,).
    Returns:
        Uint8 tensor (max_bytes,), UTF-8 and zeros, and int32 tensor (), how many bytes
        are text. The attribute `max_bytes` is what the longest of texts takes.
    Raises:
        ValueError: as `TextEncoder`.
    """

    def __init__(self, model_bytes, max_ids, end_id, piece_ids=None):
        model = UnigramModel(model_bytes)
        self.max_ids, self._end_id = max_ids, end_id
        self._surfaces = Surfaces(model)
        self._piece_of = _inverse(_checked(piece_ids, model), model)
        self._nothing = len(model.pieces)
        self.max_bytes = max_ids * self._surfaces.longest

    def __call__(self, ids):
        ended = tf.cumsum(tf.cast(ids == self._end_id, tf.int32)) > 0
        pieces = tf.where(ended, self._nothing, self._pieces(ids))
        starts, sizes = self._surfaces(pieces)
        ends = tf.cumsum(sizes)

        def step(place, text):
            surface = self._surfaces.at(tf.gather(starts, place))
            offset = tf.gather(ends - sizes, place)
            return place + 1, ops.slice_update(text, [offset], surface)

        places = tf.range(ids.shape[0])
        count = tf.reduce_max(tf.where(sizes > 0, places + 1, 0))
        nothing = tf.cast(0 * count, tf.int8)  # zeros alone would lie in the file
        state = (tf.constant(0), tf.fill([self.max_bytes], nothing))
        _, text = tf.while_loop(lambda place, _: place < count, step, state)
        length = ends[-1]
        text = tf.where(tf.range(self.max_bytes) < length, text, 0)
        return tf.cast(text, tf.uint8), length

    def _pieces(self, ids):
        """The piece of each id, or `nothing`."""
        size = self._nothing if self._piece_of is None else len(self._piece_of)
        known = (ids >= 0) & (ids < size)
        ids = tf.where(known, ids, 0)
        pieces = ids if self._piece_of is None else tf.gather(self._piece_of, ids)
        return tf.where(known, pieces, self._nothing)


def _checked(piece_ids, model):
    """An int32 array (P,), or None."""
    if piece_ids is None:
        return None
    piece_ids, size = np.asarray(piece_ids), len(model.pieces)
    integers = piece_ids.dtype.kind in "iu"
    if piece_ids.shape != (size,) or not integers or piece_ids.min() < 0:
        raise ValueError(
            f"`piece_ids` must be {size} integers from 0 on, one for each piece. "
            f"Received: shape {piece_ids.shape}, {piece_ids!r:.60}"
        )
    return piece_ids.astype("int32")


def _inverse(piece_ids, model):
    """The piece of each id, `len(model.pieces)` for none, or None."""
    if piece_ids is None:
        return None
    pieces = np.full(piece_ids.max() + 1, len(piece_ids), "int32")
    for piece in reversed(range(len(piece_ids))):
        pieces[piece_ids[piece]] = piece
    pieces[piece_ids[model.unknown_id]] = model.unknown_id
    return pieces
