"""How good a translator is, by sacreBLEU's BLEU and chrF."""


def score(translator, corpus):
    """BLEU and chrF of greedy translations of a corpus's sources.

    Args:
        translator: Translator.
        corpus: ParallelCorpus; its targets are the references.
    Returns:
        Dict: "bleu" and "chrf" (floats, 0 to 100), "signature" (str, sacreBLEU's, which
        says how BLEU was computed) and "translations" (list of str).
    Source: Post 2018 for the signature; Papineni et al. 2002; Popović 2015.
    """
    from sacrebleu.metrics import BLEU, CHRF

    translations = translator.translate(list(corpus.sources))
    references = [list(corpus.targets)]
    bleu = BLEU()
    return {
        "bleu": bleu.corpus_score(translations, references).score,
        "chrf": CHRF().corpus_score(translations, references).score,
        "signature": str(bleu.get_signature()),
        "translations": translations,
    }
