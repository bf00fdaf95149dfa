r"""Words and letters with their combining marks, as readers see them.

Python's `\w` does not match marks, such as the vowel signs of Hindi and the points of
Hebrew.
"""

import functools
import re
import unicodedata


def letters(text: str) -> list[str]:
    """Returns the characters of a text, each with the marks after it."""
    return with_marks(r".[{marks}]*").findall(text)


def words(text: str) -> list[re.Match]:
    """Finds the words of a text, which are runs of letters, digits and underscores."""
    return list(with_marks(r"\w[\w{marks}]*").finditer(text))


def words_of_letters(text: str) -> list[str]:
    """Returns the words of a text; digits and underscores end a word."""
    return with_marks(r"[^\W\d_](?:[^\W\d_]|[{marks}])*").findall(text)


def without_punctuation(text: str) -> str:
    """Returns only the words and white space of a text."""
    return with_marks(r"[^\w\s{marks}][{marks}]*").sub("", text)


def without_marks(text: str) -> str:
    """Returns a text without marks."""
    return with_marks(r"[{marks}]").sub("", text)


def split_last_marks(text: str) -> tuple[str, str]:
    """Returns a sentence up to its last word, and the punctuation after it."""
    end = with_marks(r"(?:.*\w[{marks}]*)?").match(text).end()
    return text[:end], text[end:]


@functools.cache
def with_marks(pattern: str) -> re.Pattern:
    """Compiles a pattern in which "{marks}" means the combining marks and joiners.

    The marks are collected in the first call, not when this module is imported.
    """
    return re.compile(pattern.replace("{marks}", _marks()), re.DOTALL)


@functools.cache
def _marks():
    return "\u200c\u200d" + "".join(  # the joiners in Persian and Indic words
        chr(code)
        for code in (*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0))
        if unicodedata.category(chr(code))[0] == "M"
    )
