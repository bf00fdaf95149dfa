"""SentencePiece tokenizers as TensorFlow Lite's builtin operators."""

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from keras_vanilla.export.sentencepiece.detokenizer import (
    MarianTextDecoder,
    TextDecoder,
)
from keras_vanilla.export.sentencepiece.normalizer import Normalizer
from keras_vanilla.export.sentencepiece.trie import FREE, ByteTrie
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import LONGEST_CHARACTER
from keras_vanilla.export.sentencepiece.viterbi import Segmenter
from keras_vanilla.tokenizer import MarianTokenizer, Tokenizer
from keras_vanilla.tokenizer.tokenizer import require_sentencepiece

OPENING, CLOSING = ord(">"), ord("<")  # twice around a code: ">>fra<<"


class TokenizerGraph:
    """A translator's tokenizer as operators; the constructor builds its tables.

    Args:
        tokenizer: Tokenizer.
        max_bytes: int. Length of a text, at least 1.
        max_source_ids: int. Number of ids of a text, at least 1.
        max_target_ids: int. Number of ids of a translation, at least 1.
    Attributes:
        encode: TextEncoder.
        decode: TextDecoder.
    Raises:
        ValueError: if the tokenizer is not a SentencePiece unigram model that can be
            converted, see `UnigramModel`.
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
        lengths = max_bytes, max_source_ids
        if isinstance(tokenizer, MarianTokenizer):
            self.encode = MarianTextEncoder(tokenizer, source, *lengths)
            self.decode = MarianTextDecoder(target, max_target_ids, end_id)
        else:
            self.encode = TextEncoder(source, *lengths, end_id, pad_id)
            self.decode = TextDecoder(target, max_target_ids, end_id)

    @property
    def nbytes(self) -> int:
        """The size of the tables in bytes, which does not depend on the lengths."""
        return sum(array.nbytes for array in _arrays([self.encode, self.decode]))


def _arrays(value) -> Iterator[np.ndarray]:
    """Yields the NumPy arrays of one of our objects and of its attributes."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _arrays(each)
    elif type(value).__module__.startswith("keras_vanilla"):
        yield from _arrays(list(vars(value).values()))


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


class MarianTextEncoder(TextEncoder):
    """Maps the bytes of a text to ids, like a `MarianTokenizer`.

    A language code that is not in the vocabulary becomes `unknown_id`.

    Args:
        tokenizer: MarianTokenizer.
        model: UnigramModel of its source.
        max_bytes, max_ids: int. As in `TextEncoder`, which describes the rest too.
    """

    def __init__(
        self,
        tokenizer: MarianTokenizer,
        model: UnigramModel,
        max_bytes: int,
        max_ids: int,
    ):
        super().__init__(model, max_bytes, max_ids, tokenizer.end_id, tokenizer.pad_id)
        source = tokenizer.source
        self._size, self._code = source.size, tokenizer.code
        self._reads_codes = tokenizer.reads_codes
        self._look_up_text = TokenLookup(source.texts, tokenizer.unknown_id)
        self._look_up_code = TokenLookup(source.codes, tokenizer.unknown_id)
        if self._code is not None:
            self._code_id = source.codes[self._code]

    def _encode(self, text_bytes):
        if not self._reads_codes:
            return self._tokens(text_bytes)
        if self._code is None:
            code_ids, code_spans, rest = self._split_code(text_bytes)
            ids, spans = self._tokens(rest)
            spans += tf.size(text_bytes) - tf.size(rest)
        else:
            ids, spans = self._tokens(text_bytes)
            code_ids = tf.fill([tf.minimum(tf.size(ids), 1)], self._code_id)
            code_spans = tf.zeros([tf.size(code_ids), 2], tf.int32)
        return (
            tf.concat([code_ids, ids], axis=0),
            tf.concat([code_spans, spans], axis=0),
        )

    def _split_code(self, text_bytes):
        """Returns id and span of the code at the start of the text, and the rest."""
        opens = tf.reduce_all(text_bytes[:2] == OPENING)
        closings = (text_bytes[:-1] == CLOSING) & (text_bytes[1:] == CLOSING)
        size = tf.size(text_bytes)
        closing = tf.reduce_min(tf.where(closings, tf.range(size - 1), size))
        has_code = opens & (closing < size)
        length = tf.where(has_code, closing + 2, 0)
        count = tf.cast(has_code, tf.int32)
        ids = self._look_up_code(text_bytes, tf.zeros([1], tf.int32), length[None])
        spans = tf.stack([[0, length]])
        return ids[:count], spans[:count], text_bytes[length:]

    def _tokens(self, text_bytes):
        pieces, written, text_bytes, spans = self._pieces(text_bytes)
        starts, ends = written[:, 0], written[:, 1]  # UNPACK fails if it is empty
        texts = self._look_up_text(text_bytes, starts, ends - starts)
        ids = tf.where(pieces == self._unknown, texts, pieces)
        return tf.where(ids < self._size, ids, self._unknown), spans


class TokenLookup:
    """Maps parts of a text to the ids of their tokens.

    Args:
        ids: dict of token -> id.
        unknown_id: int. Id of a part that is not a token.
    Call arguments:
        text_bytes: int32 tensor (n,), the text.
        starts: int32 tensor (p,). The start of each part.
        lengths: int32 tensor (p,). The number of bytes of each part.
    Returns:
        Int32 tensor (p,).
    """

    def __init__(self, ids: dict[str, int], unknown_id: int):
        ids = {token.encode(): id_ for token, id_ in ids.items() if "\0" not in token}
        self._unknown_id, self._longest = unknown_id, max(map(len, ids), default=0)
        self._trie = ByteTrie.build(ids, missing=unknown_id) if ids else None

    def __call__(
        self, text_bytes: tf.Tensor, starts: tf.Tensor, lengths: tf.Tensor
    ) -> tf.Tensor:
        if self._trie is None:
            return tf.fill(tf.shape(starts), self._unknown_id)
        ids = self._trie.values(self._trie.walk(text_bytes, self._longest))  # (d, n)
        depth, size = tf.unstack(tf.shape(ids))
        in_reach = (lengths > 0) & (lengths <= depth)
        indices = tf.where(in_reach, (lengths - 1) * size + starts, 0)
        ids = tf.gather(tf.reshape(ids, [-1]), indices)
        return tf.where(in_reach, ids, self._unknown_id)
