import pytest
import sacrebleu
from word_reversal import dutch

from keras_vanilla.evaluation import score
from keras_vanilla.text import ParallelCorpus


def test_scores_are_sacrebleus_of_the_translations(trained_translator):
    sources = ["one two three four", "small red house", "ten trees"]
    references = [dutch(sources[0]), "klein huis rood", "nul"]
    result = score(trained_translator, ParallelCorpus(sources, references))
    translations = trained_translator.translate(sources)
    expected = sacrebleu.corpus_bleu(translations, [references])
    assert result["translations"] == translations
    assert result["bleu"] == pytest.approx(expected.score)
    assert result["chrf"] == pytest.approx(
        sacrebleu.corpus_chrf(translations, [references]).score
    )
    assert "tok:13a" in result["signature"] and "case:mixed" in result["signature"]
    assert 0 < result["bleu"] < 100
