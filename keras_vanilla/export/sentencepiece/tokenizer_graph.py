"""SentencePiece tokenizers as TensorFlow Lite's builtin operators."""

import numpy as np
import tensorflow as tf

from keras_vanilla._operators import slice_update
from keras_vanilla.export.sentencepiece.normalizer import Normalizer
from keras_vanilla.export.sentencepiece.trie import FREE, ByteTrie
from keras_vanilla.export.sentencepiece.unigram_model import SPACE_MARK, UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import (
    LONGEST_CHARACTER,
    belongs_to_character,
)
from keras_vanilla.export.sentencepiece.viterbi import Segmenter
from keras_vanilla.tokenizer import MarianTokenizer, Tokenizer
from keras_vanilla.tokenizer.tokenizer import require_sentencepiece

OPENING, CLOSING = ord(">"), ord("<")  # twice around a code: ">>fra<<"
NOT_A_BYTE = 255  # marks bytes outside of characters
WHITE_SPACE = (9, 13), (28, 32)  # ranges of bytes, as in `str.strip`
PLAIN, MARKED, BYTE = range(3)  # kinds: MARKED begins with a space mark


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


class Surfaces:
    """Finds the text of each piece of a sequence, its surface.

    The surface of a byte piece is its byte, or empty if it does not form a character
    with the byte pieces around it. The space before the first word is omitted.

    Args:
        model: UnigramModel.
    Call arguments:
        pieces: int32 tensor (L,). SentencePiece's ids; `len(model.pieces)` has no text.
    Returns:
        Int32 tensors (L,): the start of each surface in the table, and its size.
    """

    def __init__(self, model: UnigramModel):
        self._no_piece = len(model.pieces)
        texts = [*_texts(model), b""]
        sizes = [len(text) for text in texts]
        self.longest = max(sizes)
        self._starts = np.cumsum([0, *sizes]).astype("int32")
        self._table = np.frombuffer(b"".join(texts) + bytes(self.longest), "int8")
        self._kinds = np.full(len(texts), PLAIN, "uint8")
        self._kinds[model.ids_of("BYTE")] = BYTE
        for id_ in model.ids_of("NORMAL", "USER_DEFINED", "UNUSED"):
            if model.pieces[id_].startswith(SPACE_MARK):
                self._kinds[id_] = MARKED
        self._strips_all = model.spec.remove_extra_whitespaces
        self._strips = self._strips_all or model.spec.add_dummy_prefix

    def __call__(self, pieces: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        kinds = tf.cast(tf.gather(self._kinds, pieces), tf.int32)
        pieces = tf.where(self._is_malformed(pieces, kinds), self._no_piece, pieces)
        starts = tf.gather(self._starts, pieces)
        sizes = tf.gather(self._starts, pieces + 1) - starts
        if not self._strips:
            return starts, sizes
        marks = tf.cast(kinds == MARKED, tf.int32)
        written = sizes - marks if self._strips_all else sizes
        first = tf.cast(tf.cumsum(written, exclusive=True) == 0, tf.int32)
        return starts + marks * first, sizes - marks * first

    def read(self, start: tf.Tensor) -> tf.Tensor:
        """Returns the table from a surface's first byte on, int8 (longest,)."""
        return tf.slice(self._table, [start], [self.longest])

    def _is_malformed(self, pieces, kinds):
        is_byte = kinds == BYTE
        bytes_ = tf.gather(self._table, tf.gather(self._starts, pieces))
        bytes_ = tf.cast(tf.cast(bytes_, tf.uint8), tf.int32)
        bytes_ = tf.where(is_byte, bytes_, NOT_A_BYTE)
        return is_byte & ~belongs_to_character(bytes_)


class TextDecoder:
    """Maps ids to the bytes of the text, like `Tokenizer.decode`.

    Ids after the first `end_id`, control pieces, ids without a piece, and byte pieces
    that form no character have no text.

    Args:
        model: UnigramModel.
        max_ids: int. Length of the input, at least 1.
        end_id: int. Id of the end of the text.
    Call arguments:
        ids: int32 tensor (max_ids,).
    Returns:
        Uint8 tensor (max_bytes,), UTF-8 padded with zeros; int32 tensor (), the number
        of bytes of text; and int32 tensor (max_ids,), the end of each id's bytes. If
        several ids form one character, its bytes belong to the last of them. The
        attribute `max_bytes` is the size of the longest text.
    """

    def __init__(self, model: UnigramModel, max_ids: int, end_id: int):
        self.max_ids, self._end_id = max_ids, end_id
        self._surfaces = Surfaces(model)
        self._no_piece = len(model.pieces)
        self.max_bytes = max_ids * self._surfaces.longest

    def __call__(self, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        text, length, ends = self._decode(ids)
        return tf.cast(text, tf.uint8), length, ends

    def _decode(self, ids):
        """Decodes to int8, which more operators support than uint8."""
        ended = tf.cumsum(tf.cast(ids == self._end_id, tf.int32)) > 0
        known = (ids >= 0) & (ids < self._no_piece) & ~ended
        pieces = tf.where(known, ids, self._no_piece)
        starts, sizes = self._surfaces(pieces)
        ends = tf.cumsum(sizes)

        def step(position, text):
            surface = self._surfaces.read(tf.gather(starts, position))
            offset = tf.gather(ends - sizes, position)
            return position + 1, slice_update(text, [offset], surface)

        positions = tf.range(ids.shape[0])
        count = tf.reduce_max(tf.where(sizes > 0, positions + 1, 0))
        nothing = tf.cast(0 * count, tf.int8)  # constant zeros would be stored
        state = (tf.constant(0), tf.fill([self.max_bytes], nothing))
        _, text = tf.while_loop(lambda position, _: position < count, step, state)
        length = ends[-1]
        text = tf.where(tf.range(self.max_bytes) < length, text, 0)
        return text, length, _whole_characters(text, ends)


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


def _whole_characters(text, ends):
    """Moves ends inside a character to the start of the character."""
    for _ in range(LONGEST_CHARACTER - 1):
        bytes_ = tf.gather(text, tf.minimum(ends, text.shape[0] - 1))
        bytes_ = tf.cast(bytes_, tf.int32)  # as int8, 0x80 to 0xBF are -128 to -65
        ends -= tf.cast(bytes_ < -64, tf.int32)
    return ends


def _texts(model):
    """Returns the text of each piece."""
    texts = [piece.replace(SPACE_MARK, b" ") for piece in model.pieces]
    texts[model.unknown_id] = model.unknown_surface
    for id_ in model.ids_of("CONTROL"):
        texts[id_] = b""
    if model.ids_of("BYTE"):
        for byte, id_ in enumerate(model.byte_ids):
            texts[id_] = bytes([byte])
    return texts
