"""Maps text to the ids of a Marian vocabulary and back in a TensorFlow graph."""

import tensorflow as tf

from keras_vanilla.export.sentencepiece.detokenizer import TextDecoder
from keras_vanilla.export.sentencepiece.text_encoder import TextEncoder
from keras_vanilla.export.sentencepiece.trie import ByteTrie
from keras_vanilla.export.sentencepiece.unigram_model import UnigramModel
from keras_vanilla.tokenizer import MarianTokenizer

OPENING, CLOSING = ord(">"), ord("<")  # twice around a code: ">>fra<<"
WHITE_SPACE = (9, 13), (28, 32)  # ranges of bytes, as in `str.strip`


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


class MarianTextDecoder(TextDecoder):
    """Maps ids to the bytes of the text, like a `MarianTokenizer`.

    White space at both ends of SentencePiece's text is stripped. Arguments, call
    arguments and results are those of `TextDecoder`.
    """

    def _decode(self, ids):
        text, length, ends = super()._decode(ids)
        positions = tf.range(self.max_bytes)
        text_bytes, is_text = tf.cast(text, tf.int32), positions < length
        for first, last in WHITE_SPACE:
            is_text &= (text_bytes < first) | (text_bytes > last)
        first = tf.reduce_min(tf.where(is_text, positions, length))
        length = tf.reduce_max(tf.where(is_text, positions + 1, first)) - first
        text = tf.gather(text, tf.minimum(positions + first, self.max_bytes - 1))
        ends = tf.clip_by_value(ends - first, 0, length)
        return tf.where(positions < length, text, 0), length, ends
