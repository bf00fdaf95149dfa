"""Texts of several sentences, translated sentence by sentence."""

import functools
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence

from keras_vanilla._checks import some_of
from keras_vanilla.translation.batch_translation import BatchTranslator, Hypothesis
from keras_vanilla.translation.encoded_texts import EncodedTexts, checked_texts

# The rules for sentences are our own because a translator does not know its languages,
# which libraries need: without the language, `sentencex` 1.0.32 cut all of 122 German
# dates such as "Montag, 1. Januar 2024" in two; `pysbd` 0.3.4 changed 177 of 1,000
# random texts and was 50 times slower.

# An end mark and what closes a quotation, white space, then what may open one and a
# letter or digit; Chinese and Japanese marks need no space after them.
END = re.compile(
    r"""[.!?…؟।]["'”’»)\]]*\s+(?=["'“‘«(\[¿¡]*(\w))|[。！？][」』”’）]*\s*(?=\S)"""
)
CLAUSE_END = re.compile(r"[,;:–—]\s+|[，；：、]\s*")
LONGEST_WORD = 40  # before a full stop; longer ones are not abbreviations
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
# What continues a time of day, a weekday or a time zone; and the name of a company.
AFTER_HOUR = re.compile(r"[A-Z]{2,5}\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")
AFTER_NAME = re.compile(r"(?:Inc|Ltd|Corp|Co|LLC|LLP|GmbH|AG)\b")


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it.

    For languages that end a sentence with a mark. A full stop does not end a sentence
    after an initial, a short number, a common abbreviation or, after a day, that of a
    month, or before a lower-case letter. The joined sentences are the text.

    Args:
        text: str.
    """
    cuts = [0, *(end.end() for end in END.finditer(text) if _ends(text, end))]
    return [
        text[a:b] for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True) if a < b
    ]


def cut_to_fit(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Cuts a sentence into pieces that fit, each with the white space after it.

    It is cut near the middle, at a comma or a similar mark; if there is none at a
    space, and if there is none anywhere. A single character is never cut.

    Args:
        text: str.
        fits: returns whether a piece is short enough.
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
    """The translations of a text's pieces, with the white space of their sources.

    Where the source had none, as in Chinese, there is a space unless the translation
    ends with a Chinese or Japanese letter.

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


def stream_sentences(
    translator: BatchTranslator,
    texts: Sequence[str],
    first_number: int = 1,
    splitter: Callable[[str], Sequence[str]] | None = None,
) -> Iterator[list[Hypothesis]]:
    """Yields one hypothesis for each text, whose sentences are translated one by one.

    The white space between sentences stays. A sentence too long for the model is cut
    further, with a warning. The code of a language in front of a text, see
    `MarianTokenizer`, is that of all its sentences.

    Args:
        translator: BatchTranslator.
        texts: list of str.
        first_number: int. The number of the first text, for errors and the warning.
        splitter: function of a text that returns its sentences, without or with the
            white space between them; None means `sentences`.
    Returns:
        Iterator of lists of one Hypothesis, without a score.
    Raises:
        TypeError, ValueError: as `EncodedTexts`; also if the sentences are not those of
            the text.
    """
    texts = checked_texts(texts, first_number)
    code_of = getattr(translator.tokenizer, "code_of", lambda text: "")
    codes = [code_of(text) for text in texts]
    pairs = zip(texts, codes, strict=True)
    split = functools.partial(_split, splitter) if splitter else sentences
    whole = [split(text.removeprefix(code)) for text, code in pairs]
    pieces, sources = _cut_and_encode(codes, whole, translator)
    _warn_cut(whole, pieces, translator.model.max_length, first_number)
    stream = translator.stream(list(itertools.chain(*pieces)), sources)
    return _join_streamed(pieces, stream)


def _split(splitter, text):
    """The sentences of a text, each with the white space after it."""
    cuts, end = [], 0
    for sentence in map(str.strip, splitter(text)):
        begin = text.find(sentence, end)
        if begin < 0 or text[end:begin].strip():
            break
        end = begin + len(sentence)
        if sentence:
            cuts.append(begin)
    if text[end:].strip():
        raise ValueError(
            "`splitter` must return the sentences of its text, unchanged and without a "
            f"gap. Received: something else from {text[end:][:80]!r} on"
        )
    cuts = [0, *cuts[1:], len(text)]  # white space at the beginning is the first one's
    return [text[a:b] for a, b in itertools.pairwise(cuts) if a < b]


def _cut_and_encode(codes, whole, translator):
    """The sentences of each text, cut to fit, and the source ids of them all."""
    longest, encode = translator.model.max_length, translator.tokenizer.encode
    coded = list(zip(codes, whole, strict=True))
    flat = [code + sentence for code, text in coded for sentence in text]
    ids_of = dict(zip(flat, EncodedTexts(flat, encode), strict=True))

    def cut(code, sentence):
        def fits(piece):
            if code + piece not in ids_of:
                ids_of[code + piece] = encode([code + piece])[0]
            return len(ids_of[code + piece]) <= longest

        return cut_to_fit(sentence, fits)

    pieces = [[p for each in text for p in cut(code, each)] for code, text in coded]
    coded = zip(codes, pieces, strict=True)
    return pieces, [ids_of[code + piece] for code, text in coded for piece in text]


def _warn_cut(whole, pieces, longest, first_number):
    """Warns of texts with a sentence that was cut."""
    pairs = enumerate(zip(whole, pieces, strict=True), start=first_number)
    cut = [number for number, (text, of_text) in pairs if len(text) < len(of_text)]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(whole)} texts have a sentence of more than {longest} "
            f"tokens, which is cut: texts {some_of(cut)}",
            stacklevel=5,
        )


def _join_streamed(pieces, stream):
    for text in pieces:
        yield [_join(text, [next(stream)[0] for _ in text])]


def _join(pieces, hypotheses):
    """One hypothesis of a text, from those of its sentences."""
    text = joined(pieces, [each.text for each in hypotheses])
    ids = [id_ for each in hypotheses for id_ in each.ids]
    ended = all(each.ended for each in hypotheses)
    unmet = [what for each in hypotheses for what in each.unmet]
    return Hypothesis(text, None, ids, ended, unmet)
