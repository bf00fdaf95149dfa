"""Translations that begin as they are told to, and n-grams that they do not repeat."""

import pytest

from keras_vanilla.translation import batch_translation
from keras_vanilla.translation.encoded_texts import encoded_prefixes

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


def test_the_translations_own_beginning_changes_nothing(trained_translator):
    free = trained_translator.translate(TEXTS, max_length=14)
    own = [" ".join(text.split()[:2]) for text in free]
    bound = trained_translator.translate(TEXTS, max_length=14, target_prefix=own)
    assert bound == free


def test_scores_are_those_of_the_model(trained_translator):
    """What the free search finds has the same score when its beginning is given."""
    text, settings = ["one two three"], {"beam_size": 3, "max_length": 14}
    [[free]] = trained_translator.stream(text, **settings)
    own = [free.text.split()[0]]
    [[bound]] = trained_translator.stream(text, target_prefix=own, **settings)
    assert bound.text == free.text
    assert bound.score == pytest.approx(free.score, abs=1e-4)


def test_no_piece_is_said_twice(trained_translator):
    text, settings = ["one one one two two"], {"max_length": 14}
    free = trained_translator.translate(text, **settings)[0].split()
    assert len(set(free)) < len(free)
    [[found]] = trained_translator.stream(text, no_repeat_ngram_size=1, **settings)
    assert len(set(found.ids)) == len(found.ids)


@pytest.mark.parametrize(
    "prefixes, error, message",
    [
        ("drie", TypeError, "one str for each text. Received: 'drie'"),
        (["drie"], ValueError, "one str for each text. Received: 1 for 2 texts"),
        ([3, "drie"], TypeError, "Target prefix 1 must be str. Received: int"),
        (["drie", "\ud800"], ValueError, "Target prefix 2 holds half a character"),
        (["drie", "twee " * 9], ValueError, "Target prefix 2 has .* output has 8"),
    ],
)
def test_bad_prefixes_are_refused(trained_translator, prefixes, error, message):
    with pytest.raises(error, match=message):
        trained_translator.translate(
            ["one", "two"], max_length=8, target_prefix=prefixes
        )


def test_characters_without_a_piece_are_refused(trained_translator):
    class Unknowing:
        unknown_id = 1

        def encode_target(self, lines):
            return [[1, 3] for _ in lines]

    with pytest.raises(
        ValueError, match="Target prefix 5 has a character .* know: 'ж'"
    ):
        encoded_prefixes(["ж"], 1, Unknowing(), 9, first_number=5)


def test_a_prefix_of_a_text_that_is_split_is_refused(trained_translator):
    with pytest.raises(ValueError, match="`target_prefix` cannot be combined"):
        trained_translator.translate(
            ["one. two."], on_too_long="split", target_prefix=["een"]
        )
