"""A text to the ids that SentencePiece gives it, in a TensorFlow graph."""

import tensorflow as tf

from keras_vanilla.export.sentencepiece.normalizer import Normalizer
from keras_vanilla.export.sentencepiece.trie import FREE
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import LONGEST_CHARACTER
from keras_vanilla.export.sentencepiece.viterbi import Segmenter


class TextEncoder:
    """Maps the bytes of a text to the ids that `sentencepiece` gives it.

    A text with more ids than `max_ids` gives the first of them, without `end_id`; the
    second output is their true number. A malformed byte counts as U+FFFD. The scores
    are added in float32: a runtime must not compute this part in float16.

    Args:
        model: UnigramModel.
        max_bytes: int. Length of the input, at least 1.
        max_ids: int. Length of the output, at least 1.
        end_id: int. Follows the last piece.
        pad_id: int. Fills up the ids.
    Call arguments:
        text: uint8 tensor (max_bytes,). UTF-8; zeros at its end are padding.
    Returns:
        Int32 tensor (max_ids,); int32 tensor (), the number of ids with `end_id`; and
        int32 tensor (max_ids, 2), where the bytes of each id begin and end in the text,
        as `sentencepiece` says. Those of `end_id` and of pads are (0, 0).
    """

    def __init__(
        self,
        model: UnigramModel,
        max_bytes: int,
        max_ids: int,
        end_id: int,
        pad_id: int,
    ):
        self.max_bytes, self.max_ids = max_bytes, max_ids
        self._empty = [end_id] + (max_ids - 1) * [pad_id]
        self._unknown = model.unknown_id
        self._normalize = Normalizer(model)
        self._segment = Segmenter(model)

    def __call__(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        places = tf.range(self.max_bytes)
        length = tf.reduce_max(tf.where(tf.cast(text, tf.int32) != 0, places + 1, 0))
        ids, spans = self.ids_of(text[:length])
        padded = tf.concat([ids, self._empty], axis=0)
        padding = [[0, self.max_ids], [0, 0]]
        return (
            tf.slice(padded, [0], [self.max_ids]),
            tf.size(ids) + 1,
            tf.slice(tf.pad(spans, padding), [0, 0], [self.max_ids, 2]),
        )

    def ids_of(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of a text of any length, uint8 (n,), without an end; their spans."""
        # The tries use 255 themselves; 254 is malformed as well.
        octets = tf.minimum(tf.cast(text, tf.int32), FREE - 1)
        return self._encode(tf.pad(octets, [[0, LONGEST_CHARACTER]]))

    def _encode(self, octets):
        """The ids of a text of any length, without an end, and their spans (p, 2)."""
        pieces, _, _, spans = self._pieces(octets)
        return pieces, spans

    def _pieces(self, octets):
        """Pieces, their spans in the normalised text, it, and spans in the text."""
        octets, origins = self._normalize(octets)
        pieces, ends = self._segment(octets)
        unknown = tf.cast(pieces == self._unknown, tf.int32)
        # Adjacent unknown characters are one unknown piece: the last of them is kept.
        repeated = unknown * tf.pad(unknown, [[0, 1]])[1:]
        kept = repeated == 0
        ends = ends[kept]
        spans = tf.stack([tf.pad(ends, [[1, 0]])[:-1], ends], axis=1)
        return pieces[kept], spans, octets, tf.gather(origins, spans)
