"""Finds the characters in UTF-8 bytes in a graph."""

import numpy as np
from keras import ops

from keras_vanilla._operators import current_operators
from keras_vanilla._types import Tensor

REPLACEMENT = "\ufffd".encode()  # replaces a malformed byte
LONGEST_CHARACTER = 4


def character_lengths(text_bytes: Tensor) -> Tensor:
    """Returns the number of bytes of the character that begins at each byte.

    It is 0 inside a character and at a malformed byte. Characters are those of the
    Unicode Standard's table 3-7, as in SentencePiece: no surrogates, no overlong forms,
    nothing above U+10FFFF.

    Args:
        text_bytes: int32 tensor (n,) of bytes.
    Returns:
        Int32 tensor (n,).
    """
    gather = current_operators().gather
    second, third, fourth = (shifted(text_bytes, by) for by in (1, 2, 3))
    first, last = (gather(bounds, text_bytes) for bounds in (_FIRST, _LAST))
    lengths = gather(_LENGTHS, text_bytes)
    two = _as_int((second >= first) & (second <= last))
    three = two * _as_int(_continues(third))
    following = two + three + three * _as_int(_continues(fourth))
    return ops.where(following >= lengths - 1, lengths, 0)


def belongs_to_character(text_bytes: Tensor) -> Tensor:
    """Returns a bool tensor (n,), True for bytes that are part of a character."""
    lengths = character_lengths(text_bytes)
    belongs = lengths > 0
    for by in range(1, LONGEST_CHARACTER):
        # Characters never overlap; a byte begins or continues one.
        belongs |= ops.pad(lengths, [[by, 0]])[: text_bytes.shape[0]] > by
    return belongs


def shifted(text_bytes: Tensor, by: int) -> Tensor:
    """Shifts bytes left by `by` positions and appends zeros."""
    return ops.pad(text_bytes, [[0, by]])[by:] if by else text_bytes


def _continues(text_bytes):
    return (text_bytes >= 0x80) & (text_bytes < 0xC0)


def _as_int(booleans):
    return ops.cast(booleans, "int32")


def _by_first_byte(default, *ranges):
    table = np.full(256, default, "int32")
    for first, last, value in ranges:
        table[first : last + 1] = value
    return table


_LENGTHS = _by_first_byte(
    0, (0x00, 0x7F, 1), (0xC2, 0xDF, 2), (0xE0, 0xEF, 3), (0xF0, 0xF4, 4)
)
# Bounds of the second byte.
_FIRST = _by_first_byte(0x80, (0xE0, 0xE0, 0xA0), (0xF0, 0xF0, 0x90))
_LAST = _by_first_byte(0xBF, (0xED, 0xED, 0x9F), (0xF4, 0xF4, 0x8F))
