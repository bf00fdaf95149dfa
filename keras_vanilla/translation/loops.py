"""Removes repetition from translations that their sources do not have."""

import re

import numpy as np

TIMES = 4  # repeats in a row that count as a loop; three occur in normal text
LONGEST = 120  # bytes in a repeated unit: 40 characters of three bytes
_REPEATED = re.compile(rb"(.{2,%d}?)\1{%d}" % (LONGEST, TIMES - 1), re.DOTALL)
# Units without a letter are not loops: 1000000, ----- and 1, 1, 1, 1.
IS_LETTER = np.array(
    [chr(byte).isascii() and chr(byte).isalpha() or byte >= 0x80 for byte in range(256)]
)
BEGINS_CHARACTER = np.array([byte & 0xC0 != 0x80 for byte in range(256)])


def without_loops(translation: str, source: str) -> str:
    """Limits repetition in a translation to three times in a row.

    A loop is a unit of 2 characters to 120 bytes, with at least one letter, that occurs
    at least four times in a row. It is shortened to three. A translation is not changed
    if its source has such a loop too.

    Args:
        translation: str.
        source: str.
    """
    content = _ended(translation)
    loop = _first_loop(content)
    if loop is None or _first_loop(_ended(source)) is not None:
        return translation
    while loop is not None:
        period, end = loop
        content = content[: end - period] + content[end:]
        loop = _first_loop(content)
    return content[:-1].decode()


def _ended(text):
    """The bytes of a text, with a space after the last word too."""
    return text.encode() + b" "


def _first_loop(content):
    """The length of the shortest unit, and the end of its fourth occurrence."""
    if not _REPEATED.search(content):  # true for nearly all texts, and faster
        return None
    content = np.frombuffer(content, "uint8")
    letters, characters = (
        np.concatenate([[0], table[content].cumsum()])
        for table in (IS_LETTER, BEGINS_CHARACTER)
    )
    for period in range(2, min(LONGEST, len(content) // TIMES) + 1):
        same = content[period:] == content[:-period]
        same = np.concatenate([[0] * (period + 1), same.cumsum()])
        ends = np.arange(TIMES * period, len(content) + 1)
        loops = (
            (same[ends] - same[ends - (TIMES - 1) * period] == (TIMES - 1) * period)
            & (letters[ends] > letters[ends - period])
            & (characters[ends] - characters[ends - period] >= 2)
        )
        if loops.any():
            return period, int(ends[loops.argmax()])
    return None
