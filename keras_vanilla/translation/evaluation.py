"""How good a translator is, by sacreBLEU's BLEU and chrF."""

import importlib.metadata

import numpy as np


def score(
    translator,
    corpus,
    beam_size=1,
    length_penalty=0.6,
    lowercase=False,
    tokenized=None,
):
    """BLEU and chrF of the translations of a corpus's sources.

    By default BLEU is sacreBLEU's own, of cased text. With `lowercase` and `tokenized`
    it is what many papers report: translations and references lose their case and
    are split by Moses's tokenizer first. chrF never sees the split text.

    Args:
        translator: Translator.
        corpus: ParallelCorpus; its targets are the references.
        beam_size: int. 1 is greedy search.
        length_penalty: float.
        lowercase: bool. Ignore case.
        tokenized: str or None. The target language, such as "en", for Moses's
            tokenizer; None leaves the splitting to sacreBLEU ("13a").
    Returns:
        Dict: "bleu" and "chrf" (floats, 0 to 100), "signature" (str, sacreBLEU's, which
        says how BLEU was computed), "translations" (list of str) and "unfinished" (list
        of int: the corpus's lines whose translation has no end).
    Raises:
        ImportError: if `tokenized` is asked for and sacremoses is missing.
        ValueError: if it is a language that Moses's tokenizer does not know.
    Source: Post 2018 for the signature; Papineni et al. 2002; Popović 2015.
    """
    found = [
        hypotheses[0]
        for hypotheses in translator.stream(
            list(corpus.sources), beam_size, length_penalty
        )
    ]
    translations = [each.text for each in found]
    return {
        **bleu_and_chrf(translations, list(corpus.targets), lowercase, tokenized),
        "translations": translations,
        "unfinished": [
            int(line)
            for line, each in zip(corpus.line_numbers, found, strict=True)
            if not each.ended
        ],
    }


def bleu_and_chrf(translations, references, lowercase=False, tokenized=None):
    """BLEU and chrF of translations.

    Args:
        translations: list of str.
        references: list of str, as many.
        lowercase: bool, as for `score`.
        tokenized: str or None, as for `score`.
    Returns:
        Dict: "bleu", "chrf" and "signature", as of `score`.
    Raises:
        ImportError, ValueError: as `score`.
    """
    from sacrebleu.metrics import BLEU, CHRF

    split = _moses(tokenized, lowercase) if tokenized else str
    bleu = BLEU(lowercase=lowercase, tokenize="none" if tokenized else None, force=True)
    result = bleu.corpus_score(
        [split(text) for text in translations], [[split(text) for text in references]]
    )
    chrf = CHRF(lowercase=lowercase).corpus_score(translations, [references])
    return {
        "bleu": result.score,
        "chrf": chrf.score,
        "signature": str(bleu.get_signature()) + _moses_version(tokenized),
    }


def worst_and_best(corpus, translations, count=3, lowercase=False):
    """The sentences with the lowest and the highest chrF, to look at.

    Args:
        corpus: ParallelCorpus.
        translations: list of str, one for each source.
        count: int. How many of each.
        lowercase: bool. Ignore case.
    Returns:
        Two lists of dicts, the worst first and the best first: "line" (int, in the
        corpus's file), "source", "translation", "reference" (str), "chrf" (float).
    """
    from sacrebleu.metrics import CHRF

    chrf = CHRF(lowercase=lowercase)
    pairs = zip(translations, corpus.targets, strict=True)
    scores = np.array(
        [chrf.sentence_score(ours, [theirs]).score for ours, theirs in pairs]
    )
    order = np.argsort(scores, kind="stable").tolist()

    def sentence(i):
        return {
            "line": int(corpus.line_numbers[i]),
            "source": corpus.sources[i],
            "translation": translations[i],
            "reference": corpus.targets[i],
            "chrf": float(scores[i]),
        }

    best_first = sorted(order, key=lambda i: -scores[i])
    return [[sentence(i) for i in some[:count]] for some in (order, best_first)]


def _moses(language, lowercase):
    """Punctuation made plain, small letters if asked for, then Moses's tokenizer."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
        from sacremoses.corpus import NonbreakingPrefixes
    except ImportError as error:
        raise ImportError(
            'Moses\'s tokenizer needs sacremoses: pip install "keras-vanilla[moses]"'
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


def _moses_version(language):
    if not language:
        return ""
    return f"|moses:{language}-sacremoses-{importlib.metadata.version('sacremoses')}"
