"""BLEU and chrF of translators, computed with sacreBLEU."""

import importlib.metadata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_vanilla._checks import check_choice, extra_missing, some_of
from keras_vanilla.data.corpus import ParallelCorpus
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.translation.encoded_texts import EncodedTexts
from keras_vanilla.translation.translator import Translator


@dataclass(frozen=True)
class Score:
    """BLEU and chrF of translations.

    Attributes:
        bleu: float, 0 to 100.
        chrf: float, 0 to 100.
        signature: str. sacreBLEU's signature, which describes how BLEU was computed.
        chrf_signature: str. The signature of chrF.
    """

    bleu: float
    chrf: float
    signature: str
    chrf_signature: str


@dataclass(frozen=True)
class EvaluationResult(Score):
    """The scores of a translator on a corpus, and its translations.

    Attributes:
        bleu, chrf, signature, chrf_signature: as in `Score`.
        corpus: ParallelCorpus. The scored pairs; its report names the lines that are
            left out.
        translations: list of str, one for each source of the corpus.
        unfinished: list of int. Lines of the corpus whose translation has no end.
    """

    corpus: ParallelCorpus
    translations: list[str]
    unfinished: list[int]


@dataclass(frozen=True)
class SentenceScore:
    """The chrF of one translation.

    Attributes:
        line: int. The line in the corpus's file.
        source: str.
        translation: str.
        reference: str.
        chrf: float, 0 to 100.
    """

    line: int
    source: str
    translation: str
    reference: str
    chrf: float


def score(
    translator: Translator,
    corpus: ParallelCorpus,
    config: DecodingConfig | None = None,
    *,
    lowercase: bool = False,
    tokenized: str | None = None,
    on_too_long: str = "leave_out",
    **settings: Any,
) -> EvaluationResult:
    """Translates the sources of a corpus and computes BLEU and chrF.

    By default this is the standard BLEU of sacreBLEU, on cased text. With `lowercase`
    and `tokenized` it is computed as in many papers: translations and references are
    first lowercased and split by Moses's tokenizer. chrF is never computed on split
    text.

    Args:
        translator: Translator.
        corpus: ParallelCorpus; its targets are the references.
        config: DecodingConfig, or None for greedy search.
        lowercase: bool. Ignore case.
        tokenized: str or None. The target language, such as "en", for Moses's
            tokenizer; None uses sacreBLEU's own tokenizer ("13a").
        on_too_long: "leave_out" pairs whose source has too many tokens for the model,
            "refuse" them, or "split" every source into sentences.
        settings: fields of `config`, such as `beam_size`.
    Returns:
        EvaluationResult.
    Raises:
        TypeError: if a setting is unknown.
        ImportError: if `tokenized` is given and sacremoses is missing.
        ValueError: if Moses's tokenizer does not know the language, no pairs remain, or
            `on_too_long` or an argument of the search is invalid.
    Warns:
        UserWarning: if pairs are left out; it lists their lines.
    Source: Post 2018 for the signature; Papineni et al. 2002; Popović 2015.
    """
    check_choice("on_too_long", on_too_long, ("leave_out", "refuse", "split"))
    if on_too_long == "leave_out":
        longest = translator.model.max_length
        lengths = EncodedTexts(corpus.sources, translator.tokenizer.encode).lengths
        what = f"have more tokens than the {longest} that the model takes"
        corpus = without_too_long(corpus, lengths > longest, what)
        on_too_long = "refuse"
    stream = translator.stream(
        list(corpus.sources), config, on_too_long=on_too_long, **settings
    )
    best = [hypotheses[0] for hypotheses in stream]
    translations = [hypothesis.text for hypothesis in best]
    ended = [hypothesis.ended for hypothesis in best]
    return score_translations(corpus, translations, ended, lowercase, tokenized)


def score_translations(
    corpus: ParallelCorpus,
    translations: Sequence[str],
    ended: Sequence[bool] | None = None,
    lowercase: bool = False,
    tokenized: str | None = None,
) -> EvaluationResult:
    """Computes BLEU and chrF of the translations of a corpus by any system.

    Args:
        corpus: ParallelCorpus; its targets are the references.
        translations: list of str, one for each source.
        ended: list of bool or None. Whether each translation has an end; None means
            that all have one.
        lowercase: bool, as for `score`.
        tokenized: str or None, as for `score`.
    Returns:
        EvaluationResult.
    Raises:
        ImportError, ValueError: same as `score`.
    """
    scores = bleu_and_chrf(translations, list(corpus.targets), lowercase, tokenized)
    if ended is None:
        ended = [True] * len(corpus)
    unfinished = corpus.line_numbers[~np.asarray(ended, bool)].tolist()
    return EvaluationResult(
        **vars(scores),
        corpus=corpus,
        translations=list(translations),
        unfinished=unfinished,
    )


def without_too_long(
    corpus: ParallelCorpus, too_long: Sequence[bool], what: str
) -> ParallelCorpus:
    """Removes pairs whose source is too long; the new report lists their lines.

    Args:
        corpus: ParallelCorpus.
        too_long: list of bool, one for each pair.
        what: str. Description of these sources, for the warning.
    Raises:
        ValueError: if no pairs remain.
    Warns:
        UserWarning: if pairs are left out.
    """
    left_out = corpus.line_numbers[np.asarray(too_long, bool)].tolist()
    if not left_out:
        return corpus
    if len(left_out) == len(corpus):
        raise ValueError(f"{corpus.origin}: all {len(corpus)} sources {what}.")
    warnings.warn(
        f"{corpus.origin}: {len(left_out)} of {len(corpus)} sources {what}, and are "
        f"left out: lines {some_of(left_out)}.",
        stacklevel=3,
    )
    kept = corpus.without(left_out)
    kept.report = {**corpus.report, "too long": left_out}
    return kept


def bleu_and_chrf(
    translations: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
    tokenized: str | None = None,
) -> Score:
    """Computes BLEU and chrF of translations.

    Args:
        translations: list of str.
        references: list of str, one for each translation.
        lowercase: bool, as for `score`.
        tokenized: str or None, as for `score`.
    Returns:
        Score.
    Raises:
        ImportError, ValueError: same as `score`.
    """
    from sacrebleu.metrics import BLEU, CHRF

    split, how = str, ""
    if tokenized:
        split = _moses(tokenized, lowercase)
        version = importlib.metadata.version("sacremoses")
        how = f"|moses:{tokenized}-sacremoses-{version}"
    bleu = BLEU(lowercase=lowercase, tokenize="none" if tokenized else None, force=True)
    result = bleu.corpus_score(
        [split(text) for text in translations], [[split(text) for text in references]]
    )
    chrf = CHRF(lowercase=lowercase)
    return Score(
        bleu=result.score,
        chrf=chrf.corpus_score(translations, [references]).score,
        signature=f"{bleu.get_signature()}{how}",
        chrf_signature=str(chrf.get_signature()),
    )


def worst_and_best(
    corpus: ParallelCorpus,
    translations: Sequence[str],
    count: int = 3,
    lowercase: bool = False,
) -> tuple[list[SentenceScore], list[SentenceScore]]:
    """Finds the sentences with the lowest and the highest chrF.

    Args:
        corpus: ParallelCorpus.
        translations: list of str, one for each source.
        count: int. Number of sentences in each list.
        lowercase: bool. Ignore case.
    Returns:
        Two lists of SentenceScore: lowest first, and highest first.
    """
    from sacrebleu.metrics import CHRF

    chrf = CHRF(lowercase=lowercase)
    pairs = zip(translations, corpus.targets, strict=True)
    scores = [chrf.sentence_score(text, [target]).score for text, target in pairs]

    def sentence(i):
        return SentenceScore(
            line=int(corpus.line_numbers[i]),
            source=corpus.sources[i],
            translation=translations[i],
            reference=corpus.targets[i],
            chrf=scores[i],
        )

    worst = sorted(range(len(scores)), key=lambda i: scores[i])[:count]
    best = sorted(range(len(scores)), key=lambda i: -scores[i])[:count]
    return list(map(sentence, worst)), list(map(sentence, best))


def _moses(language, lowercase):
    """A function that normalises punctuation, optionally lowercases, then tokenizes."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
        from sacremoses.corpus import NonbreakingPrefixes
    except ImportError as error:
        raise extra_missing(
            "Texts tokenized by Moses's rules", "sacremoses", "moses"
        ) from error
    known = set(NonbreakingPrefixes().available_langs.values())
    if language not in known:
        raise ValueError(
            f"Moses's tokenizer knows the languages {', '.join(sorted(known))}. "
            f"Received: {language!r}"
        )
    normalizer = MosesPunctNormalizer(lang=language)
    tokenizer = MosesTokenizer(lang=language)

    def split(text):
        text = normalizer.normalize(text)
        text = text.lower() if lowercase else text
        return tokenizer.tokenize(text, escape=True, return_str=True)

    return split
