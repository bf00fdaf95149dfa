"""Translations that begin as they are told to, and n-grams that they do not repeat."""

import pytest

from keras_vanilla.translation import batch_translation

TEXTS = ["one two three", "", "seven", "tree one zero river"]
PREFIXES = ["drie drie", "zes", "", "acht"]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_begin_with_their_prefixes(
    trained_translator, beam_size, monkeypatch
):
    monkeypatch.setattr(batch_translation, "WINDOW", 3)
    settings = {"beam_size": beam_size, "max_length": 14}
    free = trained_translator.translate(TEXTS, **settings)
    bound = trained_translator.translate(TEXTS, target_prefix=PREFIXES, **settings)
    for text, prefix in zip(bound, PREFIXES, strict=True):
        assert text.split()[: len(prefix.split())] == prefix.split()
    assert bound[2] == free[2] and bound[0] != free[0]
    assert free[1] == "" and bound[1].startswith("zes")


def test_scores_are_those_of_the_model(trained_translator):
    """What the free search finds has the same score when its beginning is given."""
    text, settings = ["one two three"], {"beam_size": 3, "max_length": 14}
    [[free]] = trained_translator.stream(text, **settings)
    own = [free.text.split()[0]]
    [[bound]] = trained_translator.stream(text, target_prefix=own, **settings)
    assert bound.text == free.text
    assert bound.score == pytest.approx(free.score, abs=1e-4)


def test_no_repeat_ngram_size_forbids_repeats(trained_translator):
    text, settings = ["one one one two two"], {"max_length": 14}
    free = trained_translator.translate(text, **settings)[0].split()
    assert len(set(free)) < len(free)
    [[found]] = trained_translator.stream(text, no_repeat_ngram_size=1, **settings)
    assert len(set(found.ids)) == len(found.ids)
