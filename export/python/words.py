"""The words of a translation, each with the word of the source that it translates.

A file of `export --outputs alignment confidence` says of each token where its bytes
end, which bytes of the source it attends to most, and its probability.
"""

import re
from bisect import bisect_right
from collections import Counter
from typing import NamedTuple

# Han, Kana, Thai, Lao, Khmer and Burmese are written without spaces: there a token
# counts as a word.
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3001-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff]"
)


class Word(NamedTuple):
    """A word, its source and the lowest probability of its tokens.

    `begin` and `end` are characters of the translation, `source_begin` and `source_end`
    of the text; both are the same where it attends to no word. What the file does not
    say is None.
    """

    begin: int
    end: int
    source_begin: int | None
    source_end: int | None
    confidence: float | None


class Token(NamedTuple):
    """Characters of the translation and of the source, and the probability."""

    begin: int
    end: int
    source: tuple[int, int]
    confidence: float | None


def words_of_sentence(source, translation, outputs):
    """The Words of one run of the model; none for a file without these outputs.

    Args:
        source: str, as the model received it.
        translation: str.
        outputs: dict of arrays, as the signature `translate` returns.
    """
    if "text_ends" not in outputs:
        return []
    tokens = _tokens(source, translation, outputs)
    linked = "source_spans" in outputs
    return [
        _word(translation, begin, end, tokens, linked)
        for begin, end in _units(translation, tokens)
    ]


def words_of_text(text, pieces, results):
    """The Words of a whole text.

    Args:
        text: str, the joined translations.
        pieces: list of str; joined they are the source.
        results: list of Translation, of each piece.
    """
    words, begin, source_begin = [], 0, 0
    for piece, result in zip(pieces, results, strict=True):
        body = result.text.strip()
        begin = text.index(body, begin)
        shift = begin - result.text.index(body)
        words += [_moved(word, shift, source_begin) for word in result.words]
        begin += len(body)
        source_begin += len(piece)
    return words


def _moved(word, shift, source_shift):
    moved = word._replace(begin=word.begin + shift, end=word.end + shift)
    if word.source_begin is None:
        return moved
    source = (word.source_begin + source_shift, word.source_end + source_shift)
    return moved._replace(source_begin=source[0], source_end=source[1])


def _tokens(source, translation, outputs):
    ends = [int(end) for end in outputs["text_ends"]]
    places = _characters(translation, [0, *ends])
    spans = outputs.get("source_spans", [(0, 0)] * len(ends))
    begins = _characters(source, [int(begin) for begin, _ in spans])
    stops = _characters(source, [int(end) for _, end in spans])
    sources = [_source_word(source, *span) for span in zip(begins, stops, strict=True)]
    confidence = outputs.get("confidence", [None] * len(ends))
    confidence = [each if each is None else float(each) for each in confidence]
    tokens = zip(places, places[1:], sources, confidence, strict=False)
    return [Token(*token) for token in tokens if token[0] < token[1]]


def _characters(text, octets):
    """The number of characters that end at or before each of some bytes."""
    ends = [0]
    for letter in text:
        ends.append(ends[-1] + len(letter.encode("utf-8", "replace")))
    return [bisect_right(ends, place) - 1 for place in octets]


def _source_word(text, begin, end):
    """The word around characters of a text; (0, 0) for none."""
    if end == 0:
        return 0, 0
    while begin < len(text) and text[begin].isspace():
        begin += 1
    end = max(begin, begin + len(text[begin:end].rstrip()))
    if UNSPACED.search(text, begin, end):
        return begin, end
    while begin > 0 and _joins(text[begin - 1]):
        begin -= 1
    while end < len(text) and _joins(text[end]):
        end += 1
    return (begin, end) if begin < end else (0, 0)


def _joins(letter):
    return not letter.isspace() and not UNSPACED.match(letter)


def _units(text, tokens):
    """Where the words of a translation begin and end."""
    cuts = {token.end for token in tokens}
    for run in re.finditer(r"\S+", text):
        begin = run.start()
        for cut in range(begin + 1, run.end()):
            if cut in cuts and UNSPACED.search(text, cut - 1, cut + 1):
                yield begin, cut
                begin = cut
        yield begin, run.end()


def _word(text, begin, end, tokens, linked):
    own = [token for token in tokens if token.begin < end and begin < token.end]
    votes = Counter()
    for token in own:
        if token.source[1]:
            shared = text[max(begin, token.begin) : min(end, token.end)]
            votes[token.source] += len(shared.encode("utf-8", "replace"))
    source = max(votes, key=votes.get, default=(0, 0)) if linked else (None, None)
    given = [token.confidence for token in own if token.confidence is not None]
    return Word(begin, end, *source, min(given, default=None))
