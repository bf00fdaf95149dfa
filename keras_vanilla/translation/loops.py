"""Loops in a translation: what it says again and again, and its source does not."""

import re

import numpy as np

TIMES = 4  # in a row: people say something three times, four times is a loop
LONGEST = 120  # bytes of what is repeated: 40 characters of three bytes
_REPEATED = re.compile(rb"(.{2,%d}?)\1{%d}" % (LONGEST, TIMES - 1), re.DOTALL)
# White space, digits and signs alone are no loop: 1000000, ----- and 1, 1, 1, 1.
IS_LETTER = np.array(
    [chr(byte).isascii() and chr(byte).isalpha() or byte >= 0x80 for byte in range(256)]
)
BEGINS_CHARACTER = np.array([byte & 0xC0 != 0x80 for byte in range(256)])


def without_loops(translation: str, source: str) -> str:
    """A translation that says nothing more than three times in a row.

    A loop is a unit of 2 characters to 120 bytes, with a letter among them, that is
    there four times or more without anything between. Three of them are left. Where the
    source has such a loop itself, the translation may, and stays as it is.

    Args:
        translation: str.
        source: str.
    """
    content = _ended(translation)
    found = _first_loop(content)
    if found is None or _first_loop(_ended(source)) is not None:
        return translation
    while found is not None:
        period, end = found
        content = content[: end - period] + content[end:]
        found = _first_loop(content)
    return content[:-1].decode()


def _ended(text):
    """Its bytes, with a space after the last word as there is after the others."""
    return text.encode() + b" "


def _first_loop(content):
    """The shortest unit's length and where it is complete for the fourth time."""
    if not _REPEATED.search(content):  # nearly always, and quicker
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
