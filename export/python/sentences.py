"""Splits long texts into sentences.

No library is used, because libraries need to know the language, which a translator does
not. Without it, `sentencex` 1.0.32 split all of 122 German dates such as "Montag, 1.
Januar 2024"; `pysbd` 0.3.4 changed 177 of 1,000 random texts and was 50 times slower.
"""

import re
from collections.abc import Callable, Sequence

# An end mark, optional closing quotes, white space, optional opening quotes, a letter
# or digit; Chinese and Japanese marks need no space after them.
END = re.compile(
    r"""[.!?…؟।]["'”’»)\]]*\s+(?=["'“‘«(\[¿¡]*(\w))|[。！？][」』”’）]*\s*(?=\S)"""
)
CLAUSE_END = re.compile(r"[,;:–—]\s+|[，；：、]\s*")
LONGEST_WORD = 40  # before a full stop; longer words are not abbreviations
SPACE = re.compile(r"\s+")
ANYWHERE = re.compile(r".", re.DOTALL)

# One letter, letters between full stops, or a short number (German "am 5. Mai").
SHORT = re.compile(r"(?:\w|\w+(?:\.\w+)+|\d{1,2})", re.UNICODE)
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev gen sen sr jr st mt vs no vol fig ca nr hr fr bzw vgl "
    "mme mlle mm art sra srta dott ing sig".split()
)

MONTHS = frozenset(
    "jan feb mär mar apr jun jul aug sep sept okt oct nov dez dec".split()
)
DAY = re.compile(r"\d{1,2}\.?")
HOUR = re.compile(r"[ap]\.m", re.IGNORECASE)
# Words that continue a time of day (weekdays, time zones) or the name of a company.
AFTER_HOUR = re.compile(r"[A-Z]{2,5}\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")
AFTER_NAME = re.compile(r"(?:Inc|Ltd|Corp|Co|LLC|LLP|GmbH|AG)\b")


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it.

    This works for languages that end sentences with a mark. A full stop does not end a
    sentence before a lower-case letter, or after an initial, a short number, a common
    abbreviation or, after a day, the abbreviation of a month. The joined sentences
    equal the text.

    Args:
        text: str.
    """
    cuts = [0, *(end.end() for end in END.finditer(text) if _ends(text, end))]
    return [
        text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True) if a < b
    ]


def cut_to_fit(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Cuts a sentence into pieces that fit, each with the white space after it.

    It is cut near the middle: at a comma or a similar mark if there is one, otherwise
    at a space, otherwise anywhere. A single character is never cut.

    Args:
        text: str.
        fits: function that returns whether a piece is short enough.
    """
    if fits(text):
        return [text]
    for mark in (CLAUSE_END, SPACE, ANYWHERE):
        ends = [end.end() for end in mark.finditer(text) if end.end() < len(text)]
        if ends:
            cut = min(ends, key=lambda end: abs(2 * end - len(text)))
            return cut_to_fit(text[:cut], fits) + cut_to_fit(text[cut:], fits)
    return [text]


def joined(pieces: Sequence[str], translations: Sequence[str]) -> str:
    """Joins the translations of pieces, with the white space of their sources.

    If the source has none, as in Chinese, a space is added unless the translation ends
    with a Chinese or Japanese letter.

    Args:
        pieces: list of str, each with the white space after it.
        translations: list of str, one for each piece.
    """
    pairs = zip(pieces, translations, strict=True)
    return "".join(text + _space(piece, text) for piece, text in pairs).strip()


def _space(piece, translation):
    after = piece[len(piece.rstrip()) :]
    return after or ("" if translation[-1:] >= "\u3000" else " ")


def _ends(text, end):
    following = end[1]
    if following is None:  # the mark was Chinese or Japanese
        return True
    if following.islower():
        return False
    if end[0][0] != ".":  # as in "Yahoo! Inc."
        return end[0][0] != "!" or not AFTER_NAME.match(text, end.end())
    before = text[max(0, end.start() - LONGEST_WORD) : end.start()].split()
    word = before[-1].lstrip("\"'“‘«([¿¡") if before else ""
    if HOUR.fullmatch(word):
        return not AFTER_HOUR.match(text, end.end())
    if word.lower() in MONTHS and len(before) > 1 and DAY.fullmatch(before[-2]):
        return False
    return not (SHORT.fullmatch(word) or word.lower() in ABBREVIATIONS)
