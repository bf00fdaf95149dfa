"""Words and letters as readers see them: with their combining marks."""

import re
import unicodedata

# Python's `\w` has no marks, such as the vowel signs of Hindi and the points of Hebrew;
# and in Persian and Indic words there are joiners.
MARKS = "\u200c\u200d" + "".join(
    chr(code)
    for code in (*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0))
    if unicodedata.category(chr(code))[0] == "M"
)
_LETTER = re.compile(rf".[{MARKS}]*", re.DOTALL)
_WORD = re.compile(rf"\w[\w{MARKS}]*")
_PUNCTUATION = re.compile(rf"[^\w\s{MARKS}][{MARKS}]*")
_TO_THE_LAST_WORD = re.compile(rf"(?:.*\w[{MARKS}]*)?", re.DOTALL)


def letters(text: str) -> list[str]:
    """The characters of a text, each with the marks after it."""
    return _LETTER.findall(text)


def words(text: str) -> list[re.Match]:
    """Where the words of a text are: its letters, digits and underscores in a row."""
    return list(_WORD.finditer(text))


def without_punctuation(text: str) -> str:
    """The text's words and white space alone."""
    return _PUNCTUATION.sub("", text)


def split_last_marks(text: str) -> tuple[str, str]:
    """A sentence up to its last word, and the punctuation marks after that."""
    end = _TO_THE_LAST_WORD.match(text).end()
    return text[:end], text[end:]
