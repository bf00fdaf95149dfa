"""Exact judgements, by translators that are known to be right or wrong."""

import pytest

from keras_vanilla.probing import loops, probe
from keras_vanilla.probing.inputs import SENTENCES

ENGLISH = SENTENCES["en"]


def result_of(translate, kind, count=20):
    results = probe(lambda texts: [translate(text) for text in texts], ENGLISH, count)
    (found,) = [each for each in results.kinds if each.kind == kind]
    return found


@pytest.mark.parametrize(
    "translation",
    [
        "the the the the",
        "a man in a man in a man in a man in a hat",
        "Pululululult",
        "犬が犬が犬が犬が",
        "no. no. no. no.",
    ],
)
def test_a_loop_is_seen(translation):
    assert loops("Ein Mann.", translation)


@pytest.mark.parametrize(
    "translation",
    [
        "",
        "A man is reading.",
        "very, very, very good",
        "3471000000",
        "wait........",
        "that that is is",
        "----------",
    ],
)
def test_what_is_no_loop(translation):
    assert not loops("Ein Mann.", translation)


def test_what_the_source_repeats_is_no_loop():
    assert not loops("tick tick tick tick", "tac tac tac tac tac")


def test_who_copies_everything_is_perfect():
    results = probe(list, ENGLISH)
    assert results.kept == 1.0
    assert results.loops == 0
    assert results.lines == 18 * 50
    assert not any(kind.failures or kind.too_long for kind in results.kinds)
    assert {kind.growth for kind in results.kinds if kind.kind != "empty"} == {1.0}


def test_a_url_that_changes_is_lost():
    result = result_of(lambda text: text.replace("org/", "org / "), "URL")
    assert result.kept == 0.0
    assert len(result.failures) == 20
    text, translation = result.failures[0]
    assert translation == text.replace("org/", "org / ")


def test_half_of_the_numbers():
    seen = []

    def translate(text):
        seen.append(text)
        return text if len(seen) % 2 else text.replace("1", "7").replace("2", "8")

    assert 0.3 < result_of(translate, "number").kept < 0.9


def test_capitals_that_change_the_translation():
    same = result_of(str.lower, "upper case")
    assert same.bleu == pytest.approx(100)
    assert result_of(str, "upper case").bleu < 30
    assert same.kept is None


def test_too_long_a_translation_of_one_word():
    words = " and everything else that there ever was or will be"
    result = result_of(lambda text: text + words, "one word")
    assert result.too_long == 20
    assert result.loops == 0


def test_something_out_of_nothing():
    """Spaces are nothing too."""
    result = result_of(lambda text: text.strip() or "Heard without a source.", "empty")
    assert result.too_long == 20


def test_the_table_has_a_line_for_each_kind():
    table = probe(list, ENGLISH, 5).table().splitlines()
    assert len(table) == 20
    assert table[0].split()[:2] == ["kind", "lines"]
    assert table[-1] == "copied 100.0%, loops 0 of 90"


def test_every_text_is_translated_once():
    calls = []

    def translate(texts):
        calls.append(texts)
        return texts

    probe(translate, ENGLISH, 10)
    (texts,) = calls
    assert len(set(texts)) == len(texts)
