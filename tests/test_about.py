import dataclasses

import numpy as np
import pytest

from keras_vanilla._about import About, short_sentences
from keras_vanilla.translation import Translator

CAPTIONS = About(
    name="Captions",
    source_language="de",
    target_language="pt-BR",
    examples=["Ein Hund rennt.", "Zwei Kinder spielen."],
    model_license="MIT",
    data="photographs",
    data_license="CC0",
)


def test_only_what_is_stated_is_kept():
    assert About(name="a", examples=[]).stated() == {"name": "a", "examples": ()}
    assert About().stated() == {}


def test_another_about_replaces_what_it_states():
    updated = CAPTIONS.updated(About(name="Other", examples=[]))
    assert updated == dataclasses.replace(CAPTIONS, name="Other", examples=())


@pytest.mark.parametrize(
    "fields, error, message",
    [
        ({"name": 3}, TypeError, "`name` must be a str. Received: 3"),
        ({"source_language": "German"}, ValueError, "BCP-47 .*Received: 'German'"),
        ({"target_language": ""}, ValueError, "`target_language` .*Received: ''"),
        ({"data": "\udcff"}, ValueError, "`data` must be Unicode text"),
        ({"examples": "Ein Hund."}, TypeError, "list of str. Received: 'Ein Hund.'"),
        ({"examples": [None]}, TypeError, r"list of str. Received: \[None\]"),
        ({"examples": 5}, TypeError, "list of str. Received: 5"),
        ({"examples": ["a", " "]}, ValueError, "`examples` must have text.*' '"),
        ({"examples": ["\udcff"]}, ValueError, "`examples` must be Unicode text"),
    ],
)
def test_what_nobody_could_show_is_refused(fields, error, message):
    with pytest.raises(error, match=message):
        About(**fields)


def test_short_sentences_are_spread_over_the_text():
    long, tiny = "a sentence of many words, " * 9, "No."
    short = [f"This is sentence {number}." for number in range(10)]
    text = [tiny, long, *short, short[0]]
    assert short_sentences(text) == tuple(short[::2])
    assert short_sentences([tiny, tiny, long]) == (tiny, long.strip())
    longer = ["word " * count for count in range(40, 20, -1)]
    nearest = [text.strip() for text in (longer[1], longer[-1])]
    assert short_sentences([long, *longer, "One that is short."])[-2:] == (
        nearest[1],
        "One that is short.",
    )
    assert short_sentences(["", " "]) == ()


def test_a_saved_translator_keeps_it(trained_translator, tmp_path):
    translator = trained_translator.replace(about=CAPTIONS)
    translator.save(tmp_path / "a.keras")
    loaded = Translator.load(tmp_path / "a.keras")
    assert loaded.about == CAPTIONS
    for mine, other in zip(
        loaded.model.get_weights(), trained_translator.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(mine, other)


def test_copies_keep_it(trained_translator):
    translator = trained_translator.replace(about=CAPTIONS)
    assert translator.copy().about == CAPTIONS
    assert translator.in_float32().about == CAPTIONS
    assert trained_translator.about == About()


def test_anything_else_is_refused(trained_translator):
    with pytest.raises(TypeError, match="`about` must be an About. Received: 'de'"):
        trained_translator.replace(about="de")
