import importlib.util
import sys

import pytest
import sacrebleu

from keras_vanilla.data import ParallelCorpus
from keras_vanilla.translation import score, worst_and_best

SOURCES = ["one two three four", "small red house", "ten trees"]
REFERENCES = ["Vier drie, twee een!", "klein huis rood", "nul"]


@pytest.fixture(scope="module")
def corpus():
    return ParallelCorpus(SOURCES, REFERENCES)


@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_are_sacrebleus_of_the_translations(
    trained_translator, corpus, lowercase
):
    result = score(trained_translator, corpus, lowercase=lowercase)
    translations = trained_translator.translate(SOURCES)
    assert result.translations == translations
    bleu, chrf = sacrebleu.BLEU(lowercase=lowercase), sacrebleu.CHRF()
    chrf.lowercase = lowercase
    for metric, value, signature in (
        (bleu, result.bleu, result.signature),
        (chrf, result.chrf, result.chrf_signature),
    ):
        expected = metric.corpus_score(translations, [REFERENCES]).score
        assert value == pytest.approx(expected) and 0 < value < 100
        assert signature == str(metric.get_signature())
    other = score(trained_translator, corpus, lowercase=not lowercase)
    assert (other.bleu < result.bleu) == (other.chrf < result.chrf) == lowercase


@pytest.mark.parametrize("lowercase", [True, False])
def test_moses_splits_as_in_papers(trained_translator, corpus, lowercase):
    sacremoses = pytest.importorskip("sacremoses")
    normalizer = sacremoses.MosesPunctNormalizer(lang="nl")
    tokenizer = sacremoses.MosesTokenizer(lang="nl")

    def split(text):
        text = normalizer.normalize(text)
        text = text.lower() if lowercase else text
        return tokenizer.tokenize(text, escape=True, return_str=True)

    result = score(trained_translator, corpus, lowercase=lowercase, tokenized="nl")
    expected = sacrebleu.corpus_bleu(
        [split(text) for text in result.translations],
        [[split(text) for text in REFERENCES]],
        tokenize="none",
        force=True,
    )
    assert result.bleu == pytest.approx(expected.score)
    assert "tok:none" in result.signature and "|moses:nl-" in result.signature
    assert f"case:{'lc' if lowercase else 'mixed'}" in result.signature


@pytest.mark.full
def test_beam_search_is_scored_when_asked_for(trained_translator, corpus):
    result = score(trained_translator, corpus, beam_size=3, length_penalty=1.0)
    expected = trained_translator.translate(SOURCES, beam_size=3, length_penalty=1.0)
    assert result.translations == expected


@pytest.mark.full
def test_lines_without_an_end_are_those_of_the_file(trained_translator):
    translator = trained_translator.copy()
    weights = [0 * weight for weight in translator.model.get_weights()]
    translator.model.set_weights(weights)  # which never ends
    corpus = ParallelCorpus(["one", "", "two"], ["een", "", "twee"])
    assert score(translator, corpus).unfinished == [1, 3]
    assert score(trained_translator, corpus).unfinished == []


def test_sources_that_are_too_long_are_left_out_and_named(trained_translator):
    texts = ["one", "zero " * 100, "", "two"]
    corpus = ParallelCorpus(texts, ["een", "nul " * 100, "", "twee"])
    with pytest.warns(UserWarning, match="1 of 3 sources .* the 60 that .*: lines 2"):
        result = score(trained_translator, corpus)
    assert result.corpus.report == {"empty": [3], "too long": [2]}
    assert list(result.corpus.line_numbers) == [1, 4] and len(result.translations) == 2
    assert corpus.report == {"empty": [3]}
    with pytest.raises(ValueError, match="Text 2 has .* takes at most 60"):
        score(trained_translator, corpus, on_too_long="refuse")
    with pytest.warns(UserWarning, match="1 of 3 texts have a sentence of more than"):
        result = score(trained_translator, corpus, on_too_long="split")
    assert result.corpus is corpus and result.translations[1].startswith("nul")


def test_worst_and_best_are_by_chrf_with_their_lines():
    corpus = ParallelCorpus(["a", "", "b", "c"], ["house", "", "tree", "green river"])
    worst, best = worst_and_best(corpus, ["house", "xyz", "green rivers"], count=2)
    assert [one.line for one in worst] == [3, 4]
    assert [one.line for one in best] == [1, 4]
    assert best[0].chrf == pytest.approx(100) and worst[0].chrf < 10
    assert worst[0].source == "b" and worst[0].reference == "tree"
    assert worst[0].translation == "xyz"
    assert worst_and_best(corpus, ["HOUSE", "", ""], 1, lowercase=True)[1][0].line == 1
    assert worst_and_best(corpus, ["house"] * 3, 0) == ([], [])


def test_moses_needs_its_extra_and_a_known_language(
    monkeypatch, trained_translator, corpus
):
    if importlib.util.find_spec("sacremoses"):
        with pytest.raises(ValueError, match="knows .* nl, .* Received: 'klingon'"):
            score(trained_translator, corpus, tokenized="klingon")
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(ImportError, match=r"pip install \"\.\[moses\]\""):
        score(trained_translator, corpus, tokenized="nl")
