"""Encodes text to SentencePiece's ids in a TensorFlow graph."""

import tensorflow as tf

from keras_vanilla.export.sentencepiece.normalizer import Normalizer
from keras_vanilla.export.sentencepiece.trie import FREE
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import LONGEST_CHARACTER
from keras_vanilla.export.sentencepiece.viterbi import Segmenter


class TextEncoder:
    """Maps the bytes of a text to ids, like `sentencepiece`.

    If a text has more than `max_ids` ids, only the first are returned, without
    `end_id`; the second output is always the full number. A malformed byte counts as
    U+FFFD. The scores are added in float32; a runtime must not compute them in float16.

    Args:
        model: UnigramModel.
        max_bytes: int. Length of the input, at least 1.
        max_ids: int. Length of the output, at least 1.
        end_id: int. Id appended to the last piece.
        pad_id: int. Id used for padding.
    Call arguments:
        text: uint8 tensor (max_bytes,). UTF-8; zeros at its end are padding.
    Returns:
        Int32 tensor (max_ids,); int32 tensor (), the number of ids including `end_id`;
        and int32 tensor (max_ids, 2), the start and end of each id's bytes in the text,
        as in `sentencepiece`, and (0, 0) for `end_id` and padding.
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
        positions = tf.range(self.max_bytes)
        length = tf.reduce_max(tf.where(tf.cast(text, tf.int32) != 0, positions + 1, 0))
        ids, spans = self.ids_of(text[:length])
        padded = tf.concat([ids, self._empty], axis=0)
        padding = [[0, self.max_ids], [0, 0]]
        return (
            tf.slice(padded, [0], [self.max_ids]),
            tf.size(ids) + 1,
            tf.slice(tf.pad(spans, padding), [0, 0], [self.max_ids, 2]),
        )

    def ids_of(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns ids and spans of a text of any length, uint8 (n,), without an end."""
        # The tries reserve 255; 254 is malformed as well.
        text_bytes = tf.minimum(tf.cast(text, tf.int32), FREE - 1)
        return self._encode(tf.pad(text_bytes, [[0, LONGEST_CHARACTER]]))

    def _encode(self, text_bytes):
        """Returns the ids of a text without an end, and their spans (p, 2)."""
        pieces, _, _, spans = self._pieces(text_bytes)
        return pieces, spans

    def _pieces(self, text_bytes):
        """Segments a text.

        Returns the pieces, their spans in the normalised text, that text, and their
        spans in the original text.
        """
        text_bytes, origins = self._normalize(text_bytes)
        pieces, ends = self._segment(text_bytes)
        unknown = tf.cast(pieces == self._unknown, tf.int32)
        # Adjacent unknown characters form one unknown piece; the last one is kept.
        repeated = unknown * tf.pad(unknown, [[0, 1]])[1:]
        kept = repeated == 0
        ends = ends[kept]
        spans = tf.stack([tf.pad(ends, [[1, 0]])[:-1], ends], axis=1)
        return pieces[kept], spans, text_bytes, tf.gather(origins, spans)
