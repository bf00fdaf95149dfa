"""SentencePiece's text to ids and back, as TensorFlow Lite's builtin operators."""

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_vanilla.export.sentencepiece.detokenizer import TextDecoder
from keras_vanilla.export.sentencepiece.normalizer import Normalizer
from keras_vanilla.export.sentencepiece.trie import FREE
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import LONGEST_CHARACTER
from keras_vanilla.export.sentencepiece.viterbi import Segmenter
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.tokenizer.tokenizer import require_sentencepiece


class TokenizerGraph:
    """A translator's tokenizer as operators; its tables are built once, here.

    Args:
        tokenizer: Tokenizer.
        max_bytes: int. Length of a text, at least 1.
        max_source_ids: int. Length of the ids of a text, at least 1.
        max_target_ids: int. Length of the ids of a translation, at least 1.
    Attributes:
        encode: TextEncoder.
        decode: TextDecoder.
    Raises:
        ValueError: if the tokenizer is not SentencePiece's, or not a unigram model that
            becomes operators, see `UnigramModel`.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_bytes: int = 1,
        max_source_ids: int = 1,
        max_target_ids: int = 1,
    ):
        require_sentencepiece("A file that takes text", tokenizer)
        source = UnigramModel(tokenizer.source_model)
        target = source
        if tokenizer.target_model != tokenizer.source_model:
            target = UnigramModel(tokenizer.target_model)
        end_id, pad_id = tokenizer.end_id, tokenizer.pad_id
        self.encode = TextEncoder(source, max_bytes, max_source_ids, end_id, pad_id)
        self.decode = TextDecoder(target, max_target_ids, end_id)

    @property
    def nbytes(self) -> int:
        """The size of the tables; it does not depend on the lengths."""
        return sum(array.nbytes for array in _arrays([self.encode, self.decode]))


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
        piece_ids: int array (P,) or None. The id of each SentencePiece piece in a
            vocabulary of another order; None means SentencePiece's own ids.
    Call arguments:
        text: uint8 tensor (max_bytes,). UTF-8; zeros at its end are padding.
    Returns:
        Int32 tensor (max_ids,), and int32 tensor (), the number of ids with `end_id`.
    Raises:
        ValueError: if `piece_ids` are not one id for each piece.
    """

    def __init__(
        self,
        model: UnigramModel,
        max_bytes: int,
        max_ids: int,
        end_id: int,
        pad_id: int,
        piece_ids: Sequence[int] | None = None,
    ):
        self.max_bytes, self.max_ids = max_bytes, max_ids
        self._empty = [end_id] + (max_ids - 1) * [pad_id]
        self._unknown = model.unknown_id
        self._piece_ids = model.check_piece_ids(piece_ids)
        self._normalize = Normalizer(model)
        self._segment = Segmenter(model)

    def __call__(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        octets = tf.cast(text, tf.int32)
        places = tf.range(self.max_bytes)
        length = tf.reduce_max(tf.where(octets != 0, places + 1, 0))
        # The tries use 255 themselves; 254 is malformed as well.
        octets = tf.pad(tf.minimum(octets, FREE - 1), [[0, LONGEST_CHARACTER]])
        octets = self._normalize(octets[: length + LONGEST_CHARACTER])
        return self._collect(self._segment(octets))

    def _collect(self, pieces):
        unknown = tf.cast(pieces == self._unknown, tf.int32)
        # Adjacent unknown characters are one unknown piece.
        repeated = unknown * tf.pad(unknown, [[1, 0]])[:-1]
        ids = self._ids(pieces[repeated == 0])
        padded = tf.concat([ids, self._empty], axis=0)
        return tf.slice(padded, [0], [self.max_ids]), tf.size(ids) + 1

    def _ids(self, pieces):
        return pieces if self._piece_ids is None else tf.gather(self._piece_ids, pieces)


def _arrays(value) -> Iterator[np.ndarray]:
    """The NumPy arrays of an object of ours and of its attributes."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _arrays(each)
    elif type(value).__module__.startswith("keras_vanilla"):
        yield from _arrays(list(vars(value).values()))
