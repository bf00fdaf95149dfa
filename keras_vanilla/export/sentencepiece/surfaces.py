"""The text of SentencePiece pieces, in a TensorFlow graph."""

import numpy as np
import tensorflow as tf

from keras_vanilla.export.sentencepiece.unigram_model import SPACE_MARK, UnigramModel
from keras_vanilla.export.sentencepiece.utf8 import REPLACEMENT, belongs_to_character

NOT_AN_OCTET = 255  # as a byte it is in no character
PLAIN, MARKED, OCTET = range(3)  # kinds: MARKED begins with a space mark


class Surfaces:
    """Finds what each piece of a sequence puts into the text.

    A byte piece puts its byte, but U+FFFD if it is in no character with the byte
    pieces beside it. The space that the first word begins with is left out.

    Args:
        model: UnigramModel.
    Call arguments:
        pieces: int32 tensor (L,). SentencePiece's ids; their number stands for nothing.
    Returns:
        Int32 tensors (L,): where each surface begins, which `at` reads, and its size.
    """

    def __init__(self, model: UnigramModel):
        self._malformed = len(model.pieces) + 1
        texts = [*_texts(model), b"", REPLACEMENT]
        sizes = [len(text) for text in texts]
        self.longest = max(sizes)
        self._starts = np.cumsum([0, *sizes]).astype("int32")
        self._octets = np.frombuffer(b"".join(texts) + bytes(self.longest), "int8")
        self._kinds = np.full(len(texts), PLAIN, "uint8")
        self._kinds[model.ids_of("BYTE")] = OCTET
        for id_ in model.ids_of("NORMAL", "USER_DEFINED", "UNUSED"):
            if model.pieces[id_].startswith(SPACE_MARK):
                self._kinds[id_] = MARKED
        self._strips_all = model.spec.remove_extra_whitespaces
        self._strips = self._strips_all or model.spec.add_dummy_prefix

    def __call__(self, pieces):
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

    def at(self, start):
        """Int8 (longest,): a surface, and what follows it in the table."""
        return tf.slice(self._octets, [start], [self.longest])

    def _is_malformed(self, pieces, kinds):
        is_octet = kinds == OCTET
        octets = tf.gather(self._octets, tf.gather(self._starts, pieces))
        octets = tf.cast(tf.cast(octets, tf.uint8), tf.int32)
        octets = tf.where(is_octet, octets, NOT_AN_OCTET)
        return is_octet & ~belongs_to_character(octets)


def _texts(model):
    """What each piece puts into a text."""
    texts = [piece.replace(SPACE_MARK, b" ") for piece in model.pieces]
    texts[model.unknown_id] = model.unknown_surface
    for id_ in model.ids_of("CONTROL"):
        texts[id_] = b""
    if model.ids_of("BYTE"):
        for octet, id_ in enumerate(model.byte_ids):
            texts[id_] = bytes([octet])
    return texts
