"""What speaks against a translation: four rules, the same in every caller of a file."""

import re

# Of 750 texts, 62 % of the wrong translations and 22 % of the right are below.
LEAST_PROBABILITY = 0.6
LEAST_KNOWN = 0.5
ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>]*[^\s<>.,;:!?'\"“”’»()\[\]]"
    r"|[^\s@<>()\[\],;:'\"“”«]+@[^\s@<>]+\.[A-Za-z]+"
)
THOUSANDS = re.compile(r"(?<![0-9])[0-9]{1,3}(?:[.,'’ \u00a0\u202f][0-9]{3})+(?![0-9])")
# Above twelve: smaller ones may be words, or hours of the afternoon.
NUMBER = re.compile(r"(?<![0-9])(?:[0-9]{3,}|[2-9][0-9]|1[3-9])(?![0-9])")


def doubts_of(
    source: str,
    translation: str,
    probability: float | None = None,
    known: float | None = None,
) -> list[str]:
    """Names what speaks against the translation of a sentence.

        "unlikely"     `probability` is below 0.6
        "missing"      a number above 12, a web or an e-mail address is not in it
        "unchanged"    its letters are those of the source
        "unknown"      `known` is below a half

    A doubt is no proof: a name may stay as it is, and "20" may become "vingt".

    Args:
        source: str.
        translation: str.
        probability: float or None. The geometric mean of the probabilities of the
            translation's tokens; None if it is not known.
        known: float or None. The share of the source's tokens that are in the
            vocabulary; characters in bytes and unknown tokens are not.
    """
    doubts = []
    if probability is not None and probability < LEAST_PROBABILITY:
        doubts.append("unlikely")
    addresses = ADDRESS.findall(source)
    if not (
        all(address in translation for address in addresses)
        and _numbers(source) <= _numbers(translation)
    ):
        doubts.append("missing")
    if _letters(ADDRESS.sub("", source)) and _letters(source) == _letters(translation):
        doubts.append("unchanged")
    if known is not None and known < LEAST_KNOWN:
        doubts.append("unknown")
    return doubts


def _numbers(text):
    """The numbers, as they are written without separators of thousands."""
    text = THOUSANDS.sub(lambda match: re.sub("[^0-9]", "", match[0]), text)
    return {*NUMBER.findall(text)}


def _letters(text):
    return "".join(filter(str.isalpha, text)).lower()
