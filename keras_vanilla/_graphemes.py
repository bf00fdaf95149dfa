r"""Words and letters as readers see them: with their combining marks.

Python's `\w` has no marks, such as the vowel signs of Hindi and the points of Hebrew.
"""

import functools
import re
import unicodedata


def letters(text: str) -> list[str]:
    """The characters of a text, each with the marks after it."""
    return with_marks(r".[{marks}]*").findall(text)


def words(text: str) -> list[re.Match]:
    """Where the words of a text are: its letters, digits and underscores in a row."""
    return list(with_marks(r"\w[\w{marks}]*").finditer(text))


def words_of_letters(text: str) -> list[str]:
    """The words of a text without digits and underscores, which end a word."""
    return with_marks(r"[^\W\d_](?:[^\W\d_]|[{marks}])*").findall(text)


def without_punctuation(text: str) -> str:
    """The text's words and white space alone."""
    return with_marks(r"[^\w\s{marks}][{marks}]*").sub("", text)


def without_marks(text: str) -> str:
    """The text's characters but marks."""
    return with_marks(r"[{marks}]").sub("", text)


def split_last_marks(text: str) -> tuple[str, str]:
    """A sentence up to its last word, and the punctuation marks after that."""
    end = with_marks(r"(?:.*\w[{marks}]*)?").match(text).end()
    return text[:end], text[end:]


@functools.cache
def with_marks(pattern: str) -> re.Pattern:
    """A pattern in which "{marks}" stands for the combining marks and joiners.

    They are looked for at the first call, not when this module is imported.
    """
    return re.compile(pattern.replace("{marks}", _marks()), re.DOTALL)


@functools.cache
def _marks():
    return "\u200c\u200d" + "".join(  # the joiners inside of Persian and Indic words
        chr(code)
        for code in (*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0))
        if unicodedata.category(chr(code))[0] == "M"
    )
