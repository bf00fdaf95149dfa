"""SentencePiece tokenizers as TensorFlow Lite's builtin operators."""

import numpy as np
from keras import ops

from keras_vanilla._operators import current_operators
from keras_vanilla._types import Tensor
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
    `end_id`; the second output is always the full number. If shapes are fixed and the
    normalised text is longer than they allow, the number is `max_ids` + 1. A malformed
    byte counts as U+FFFD. The scores are added in float32; a runtime must not compute
    them in float16.

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
        self._end_id, self._pad_id = end_id, pad_id
        self._unknown = model.unknown_id
        self._normalize = Normalizer(model)
        self._segment = Segmenter(model)

    def __call__(self, text: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        positions = ops.arange(self.max_bytes, dtype="int32")
        is_text = ops.cast(text, "int32") != 0
        length = ops.max(ops.where(is_text, positions + 1, 0))
        size = current_operators().size_for(length, self.max_bytes)
        ids, spans, count = self.ids_of(ops.slice(text, [0], [size]), length)
        positions = ops.arange(self.max_ids, dtype="int32")
        after = ops.where(positions == count, self._end_id, self._pad_id)
        ids = ops.pad(ids, [[0, self.max_ids]])[: self.max_ids]
        spans = ops.pad(spans, [[0, self.max_ids], [0, 0]])[: self.max_ids]
        return (
            ops.where(positions < count, ids, after),
            count + 1,
            ops.where(ops.expand_dims(positions < count, 1), spans, 0),
        )

    def ids_of(
        self, text: Tensor, length: Tensor | int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns ids and spans of a text without an end, and their number.

        Args:
            text: uint8 tensor (n,); what follows the text is zeros.
            length: int or int32 tensor (). Number of bytes of the text.
        """
        # The tries reserve 255; 254 is malformed as well.
        text_bytes = ops.minimum(ops.cast(text, "int32"), FREE - 1)
        return self._encode(ops.pad(text_bytes, [[0, LONGEST_CHARACTER]]), length)

    def _encode(self, text_bytes, length):
        """Returns the ids of a text without an end, their spans (p, 2), and p."""
        pieces, _, _, spans, count = self._pieces(text_bytes, length)
        return pieces, spans, count

    def _pieces(self, text_bytes, length):
        """Segments a text.

        Returns the pieces, their spans in the normalised text, that text, their spans
        in the original text, and their number.
        """
        operators = current_operators()
        text_bytes, origins, length = self._normalize(text_bytes, length)
        (size,) = text_bytes.shape
        fitting = length if size is None else ops.minimum(length, size - 1)
        pieces, ends, count = self._segment(text_bytes, fitting)
        is_piece = ops.arange(ops.shape(pieces)[0], dtype="int32") < count
        unknown = ops.cast((pieces == self._unknown) & is_piece, "int32")
        # Adjacent unknown characters form one unknown piece; the last one is kept.
        repeated = unknown * ops.pad(unknown, [[0, 1]])[1:]
        kept = (repeated == 0) & is_piece
        count = ops.sum(ops.cast(kept, "int32"))
        if size is not None:
            count = ops.where(length > fitting, self.max_ids, count)
        kept = operators.true_positions(kept, self.max_ids)
        pieces, ends = operators.gather(pieces, kept), operators.gather(ends, kept)
        spans = ops.stack([ops.pad(ends, [[1, 0]])[:-1], ends], axis=1)
        return pieces, spans, text_bytes, operators.gather(origins, spans), count


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

    def _encode(self, text_bytes, length):
        if not self._reads_codes:
            return self._tokens(text_bytes, length)
        operators = current_operators()
        if self._code is None:
            code_id, code_length, rest = self._split_code(text_bytes)
            ids, spans, count = self._tokens(rest, length - code_length)
            spans, has_code = spans + code_length, ops.cast(code_length > 0, "int32")
        else:
            ids, spans, count = self._tokens(text_bytes, length)
            code_id, code_length, has_code = [self._code_id], 0, ops.minimum(count, 1)
        ids = ops.concatenate([ops.convert_to_tensor(code_id, "int32"), ids], axis=0)
        code_span = ops.reshape(ops.stack([0, code_length]), (1, 2))
        spans = ops.concatenate([code_span, spans], axis=0)
        count = count + has_code
        size = operators.size_for(count, self.max_ids)
        return (
            ops.slice(ids, [1 - has_code], [size]),
            ops.slice(spans, [1 - has_code, 0], [size, 2]),
            count,
        )

    def _split_code(self, text_bytes):
        """Returns id and length of the code at the start of the text, and the rest."""
        opens = ops.all(text_bytes[:2] == OPENING)
        closings = (text_bytes[:-1] == CLOSING) & (text_bytes[1:] == CLOSING)
        (size,) = ops.shape(text_bytes)
        positions = ops.arange(size - 1, dtype="int32")
        closing = ops.min(ops.where(closings, positions, size))
        length = ops.where(opens & (closing < size), closing + 2, 0)
        start = ops.zeros((1,), dtype="int32")
        ids = self._look_up_code(text_bytes, start, ops.reshape(length, (1,)))
        rest = ops.pad(text_bytes, [[0, size]])
        rest_size = current_operators().size_for(size - length, size)
        return ids, length, ops.slice(rest, [length], [rest_size])

    def _tokens(self, text_bytes, length):
        pieces, written, text_bytes, spans, count = self._pieces(text_bytes, length)
        starts, ends = written[:, 0], written[:, 1]  # UNPACK fails if it is empty
        texts = self._look_up_text(text_bytes, starts, ends - starts)
        ids = ops.where(pieces == self._unknown, texts, pieces)
        return ops.where(ids < self._size, ids, self._unknown), spans, count


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

    def __call__(self, text_bytes: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
        if self._trie is None:
            return ops.full(ops.shape(starts), self._unknown_id, dtype="int32")
        ids = self._trie.values(self._trie.walk(text_bytes, self._longest))  # (d, n)
        depth, size = ops.shape(ids)
        in_reach = (lengths > 0) & (lengths <= depth)
        indices = ops.where(in_reach, (lengths - 1) * size + starts, 0)
        ids = current_operators().gather(ops.reshape(ids, (-1,)), indices)
        return ops.where(in_reach, ids, self._unknown_id)


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

    def __call__(self, pieces: Tensor) -> tuple[Tensor, Tensor]:
        gather = current_operators().gather
        kinds = ops.cast(gather(self._kinds, pieces), "int32")
        pieces = ops.where(self._is_malformed(pieces, kinds), self._no_piece, pieces)
        starts = gather(self._starts, pieces)
        sizes = gather(self._starts, pieces + 1) - starts
        if not self._strips:
            return starts, sizes
        marks = ops.cast(kinds == MARKED, "int32")
        written = sizes - marks if self._strips_all else sizes
        first = ops.cast(ops.cumsum(written) == written, "int32")
        return starts + marks * first, sizes - marks * first

    def read(self, start: Tensor) -> Tensor:
        """Returns the table from a surface's first byte on, int8 (longest,)."""
        return ops.slice(self._table, [start], [self.longest])

    def _is_malformed(self, pieces, kinds):
        gather, is_byte = current_operators().gather, kinds == BYTE
        bytes_ = gather(self._table, gather(self._starts, pieces))
        bytes_ = ops.cast(ops.cast(bytes_, "uint8"), "int32")
        bytes_ = ops.where(is_byte, bytes_, NOT_A_BYTE)
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

    def __call__(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        text, length, ends = self._decode(ids)
        return ops.cast(text, "uint8"), length, ends

    def _decode(self, ids):
        """Decodes to int8, which more operators support than uint8."""
        operators = current_operators()
        ended = ops.cumsum(ops.cast(ids == self._end_id, "int32")) > 0
        known = (ids >= 0) & (ids < self._no_piece) & ~ended
        pieces = ops.where(known, ids, self._no_piece)
        starts, sizes = self._surfaces(pieces)
        ends = ops.cumsum(sizes)

        def step(position, text):
            surface = self._surfaces.read(operators.gather(starts, position))
            offset = operators.gather(ends - sizes, position)
            return position + 1, operators.slice_update(text, [offset], surface)

        positions = ops.arange(self.max_ids, dtype="int32")
        count = ops.max(ops.where(sizes > 0, positions + 1, 0))
        nothing = ops.cast(0 * count, "int8")  # constant zeros would be stored
        state = (0, ops.full((self.max_bytes,), nothing, dtype="int8"))
        _, text = ops.while_loop(lambda position, _: position < count, step, state)
        length = ends[-1]
        is_text = ops.arange(self.max_bytes, dtype="int32") < length
        text = ops.where(is_text, text, np.int8(0))
        return text, length, _whole_characters(text, ends)


class MarianTextDecoder(TextDecoder):
    """Maps ids to the bytes of the text, like a `MarianTokenizer`.

    White space at both ends of SentencePiece's text is stripped. Arguments, call
    arguments and results are those of `TextDecoder`.
    """

    def _decode(self, ids):
        text, length, ends = super()._decode(ids)
        positions = ops.arange(self.max_bytes, dtype="int32")
        text_bytes, is_text = ops.cast(text, "int32"), positions < length
        for first, last in WHITE_SPACE:
            is_text &= (text_bytes < first) | (text_bytes > last)
        first = ops.min(ops.where(is_text, positions, length))
        length = ops.max(ops.where(is_text, positions + 1, first)) - first
        places = ops.minimum(positions + first, self.max_bytes - 1)
        text = current_operators().gather(text, places)
        ends = ops.clip(ends - first, 0, length)
        return ops.where(positions < length, text, np.int8(0)), length, ends


def _whole_characters(text, ends):
    """Moves ends inside a character to the start of the character."""
    for _ in range(LONGEST_CHARACTER - 1):
        bytes_ = current_operators().gather(text, ops.minimum(ends, text.shape[0] - 1))
        bytes_ = ops.cast(bytes_, "int32")  # as int8, 0x80 to 0xBF are -128 to -65
        ends -= ops.cast(bytes_ < -64, "int32")
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
