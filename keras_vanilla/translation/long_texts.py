"""Translates texts sentence by sentence."""

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence

from keras_vanilla._checks import some_of
from keras_vanilla.data.sentences import cut_to_fit, joined, sentences
from keras_vanilla.translation.batch_translation import BatchTranslator, Hypothesis
from keras_vanilla.translation.encoded_texts import EncodedTexts, checked_texts


def stream_sentences(
    translator: BatchTranslator,
    texts: Sequence[str],
    first_number: int = 1,
    splitter: Callable[[str], Sequence[str]] | None = None,
) -> Iterator[list[Hypothesis]]:
    """Yields one hypothesis per text, translating its sentences one by one.

    White space between sentences is kept. A sentence that is too long for the model is
    cut further, with a warning. A language code in front of a text, see
    `MarianTokenizer`, applies to all its sentences.

    Args:
        translator: BatchTranslator.
        texts: list of str.
        first_number: int. The number of the first text, for errors and the warning.
        splitter: function that maps a text to its sentences, with or without the white
            space between them; None means `sentences`.
    Returns:
        Iterator of lists of one Hypothesis, without a score.
    Raises:
        TypeError, ValueError: same as `EncodedTexts`; also if `splitter` returns
            sentences that are not in the text.
    """
    texts = checked_texts(texts, first_number)
    code_of = getattr(translator.tokenizer, "code_of", lambda text: "")
    codes = [code_of(text) for text in texts]
    pairs = zip(texts, codes, strict=True)
    split = functools.partial(_split, splitter) if splitter else sentences
    text_sentences = [split(text.removeprefix(code)) for text, code in pairs]
    pieces, sources = _cut_and_encode(codes, text_sentences, translator)
    numbered = enumerate(zip(text_sentences, pieces, strict=True), start=first_number)
    cut = [number for number, (text, of_text) in numbered if len(text) < len(of_text)]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(texts)} texts have a sentence of more than "
            f"{translator.model.max_length} tokens, which is cut: texts {some_of(cut)}",
            stacklevel=4,
        )
    stream = translator.stream(list(itertools.chain(*pieces)), sources)
    return ([_join(text, [next(stream)[0] for _ in text])] for text in pieces)


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
    cuts = [0, *cuts[1:], len(text)]  # leading white space goes to the first sentence
    return [text[a:b] for a, b in itertools.pairwise(cuts) if a < b]


def _cut_and_encode(codes, text_sentences, translator):
    """The sentences of each text, cut to fit, and the source ids of all sentences."""
    longest, encode = translator.model.max_length, translator.tokenizer.encode
    coded = list(zip(codes, text_sentences, strict=True))
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


def _join(pieces, hypotheses):
    """Joins the hypotheses of sentences to one hypothesis of their text."""
    text = joined(pieces, [each.text for each in hypotheses])
    ids = [id_ for each in hypotheses for id_ in each.ids]
    ended = all(each.ended for each in hypotheses)
    unmet = [what for each in hypotheses for what in each.unmet]
    doubts = list(dict.fromkeys(what for each in hypotheses for what in each.doubts))
    return Hypothesis(text, None, ids, ended, unmet, doubts)
