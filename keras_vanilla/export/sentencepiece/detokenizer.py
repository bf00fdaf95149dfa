"""Decodes SentencePiece's ids to text in a TensorFlow graph."""

import numpy as np
import tensorflow as tf

from keras_vanilla._operators import slice_update
from keras_vanilla.export.sentencepiece.unigram_model import SPACE_MARK, UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import (
    LONGEST_CHARACTER,
    REPLACEMENT,
    belongs_to_character,
)

NOT_A_BYTE = 255  # marks bytes outside of characters
WHITE_SPACE = (9, 13), (28, 32)  # ranges of bytes, as in `str.strip`
PLAIN, MARKED, BYTE = range(3)  # kinds: MARKED begins with a space mark


class Surfaces:
    """Finds the text of each piece of a sequence, its surface.

    The surface of a byte piece is its byte, or U+FFFD if it does not form a character
    with the byte pieces around it. The space before the first word is omitted.

    Args:
        model: UnigramModel.
    Call arguments:
        pieces: int32 tensor (L,). SentencePiece's ids; `len(model.pieces)` has no text.
    Returns:
        Int32 tensors (L,): the start of each surface in the table, and its size.
    """

    def __init__(self, model: UnigramModel):
        self._malformed = len(model.pieces) + 1
        texts = [*_texts(model), b"", REPLACEMENT]
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
        pieces = tf.where(self._is_malformed(pieces, kinds), self._malformed, pieces)
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
    """Maps ids to the bytes of the text, like `sentencepiece`.

    Ids after the first `end_id`, control pieces and ids without a piece have no text.

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
