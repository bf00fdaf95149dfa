"""Splits long texts into sentences.

No library is used, because libraries need to know the language, which a translator does
not. Without it, `sentencex` 1.0.32 split all of 122 German dates such as "Montag, 1.
Januar 2024"; `pysbd` 0.3.4 changed 177 of 1,000 random texts and was 50 times slower.
"""

import re
from collections.abc import Callable, Sequence

# An end mark, closing quotes, white space, opening quotes or a dash, and a word.
# Chinese, Japanese, Khmer and Burmese marks need no space after them.
END = re.compile(
    r"""[.!?…؟۔।॥։።](?:\s?»|["'”’“›«‹)\]])*\s+(?=(?:["'“‘„‚«»‹(\[¿¡–—-]\s?)*(\w+))"""
    r"|[。！？｡។။]+[」』”’）]*\s*(?=\S)"
)
CLAUSE_END = re.compile(r"[,;:–—]\s+|[，；：、]\s*")
LONGEST_WORD = 40  # before a full stop; longer words are not abbreviations
SPACE = re.compile(r"\s+")
ANYWHERE = re.compile(r".", re.DOTALL)

BEFORE_WORD = re.compile(r"""["'’“‘„‚«»‹(\[¿¡]*(?:(?:[dl]|dell|all)['’])?""", re.I)
# One letter, letters between full stops, or a short number (German "am 5. Mai").
SHORT = re.compile(r"[^\W\d_]|[^\W\d_]{1,4}(?:\.-?[^\W\d_]{1,4})+|\d{1,2}")
COUNTED = re.compile(r"\d+|\w\.")
# The lists are those of all callers of exported files. An abbreviation with a capital
# here is another word without it; the others are found in any case.
ABBREVIATIONS = frozenset(
    """
    Adm Amb approx aprox Atty av avv bd bijv boul Brig bzgl bzw ca Capt Cdr Cdt cf
    Cmdr Cne Col Cpl dhr dipl dott dr dra drs dt dña ehem ej engl env evtl exkl fr
    frz Ft geb Gen gest ggf Gov Gén Hon hr hrn ing inkl Insp Lic Lt Maj Mdm Messrs
    mevr Mgr mio mlle mlles MM mme mmes mr mrd mrs ms Mt Mx Pr Pres prof Profs Pvt
    Rep Rev röm Sen Sgt Sig sog sr sra sres srta St Ste Supt tsd ud uds vgl viz vs
    zzgl österr
    """.split()
)
BEFORE_NUMBER = frozenset(
    """
    abb abs al alt anh anm app art arts aufl bd bde bl blz cap ch chap chaps col
    cols ed eds eq eqs est ext fasc fig figs fn hab hg inv jg kap lfd lib max min
    mind no nos nr núm op pag pagg par pos pp pág págs rd ref refs rev rn rs réf sec
    secs sect str tab tel tit tél ver vers vol vols ziff zit éd
    """.split()
)
MONTHS = frozenset(
    """
    jan janv ene gen feb febr fév févr mär mrz mar mrt apr avr abr jun jul juil aug
    sep sept okt oct ott nov dez dec déc dic
    """.split()
)
DAY = re.compile(r"\d{1,2}(?:\.|er|st|nd|rd|th)?")
HOUR = re.compile(r"[ap]\.m", re.IGNORECASE)
NUMBER = re.compile(r"\d\w*|[IVXLC]{2,}")
# Words that continue a time of day (weekdays, time zones) or the name of a company.
AFTER_HOUR = re.compile(r"[A-Z]{2,5}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
AFTER_NAME = re.compile(r"Inc|Ltd|Corp|Co|LLC|LLP|GmbH|AG")


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it.

    This works for languages that end sentences with a mark. A full stop does not end a
    sentence before a lower-case letter, after an initial, a short number, a title or
    another common abbreviation, between a reference such as "Fig." or a month and its
    number, or between a day and the abbreviation of its month. The joined sentences
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
    mark, following = end[0][0], end[1]
    if following is None:  # the mark was Chinese or Japanese
        return True
    if following[0].islower():
        return False
    if mark != ".":  # as in "Yahoo! Inc."
        return mark != "!" or not AFTER_NAME.fullmatch(following)
    near = text[max(0, end.start() - LONGEST_WORD) : end.start()].split()
    previous, word = ["", "", *(BEFORE_WORD.sub("", each, 1) for each in near)][-2:]
    if HOUR.fullmatch(word):
        return not AFTER_HOUR.fullmatch(following)
    if SHORT.fullmatch(word):  # an end only as in "Bd. 3. Dort"
        return word.isdecimal() and (
            bool(COUNTED.fullmatch(previous))
            or _is_in(BEFORE_NUMBER, previous.rstrip("."))
        )
    if _is_in(ABBREVIATIONS, word):
        return False
    is_month = _is_in(MONTHS, word)
    if is_month and DAY.fullmatch(previous):
        return False
    is_reference = is_month or _is_in(BEFORE_NUMBER, word)
    return not (is_reference and NUMBER.fullmatch(following))


def _is_in(words, word):
    return word in words or word.lower() in words
