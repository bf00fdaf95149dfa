import dataclasses

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
    converted_from="hub:OWNER/NAME@v1",
)


def test_only_stated_fields_are_kept():
    assert About(name="a", examples=[]).stated() == {"name": "a", "examples": ()}
    assert About().stated() == {}


def test_update_replaces_stated_fields():
    updated = CAPTIONS.updated(About(name="Other", examples=[]))
    assert updated == dataclasses.replace(CAPTIONS, name="Other", examples=())


def test_short_sentences_are_spread():
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


def test_saved_translator_and_copies_keep_about(trained_translator, tmp_path):
    translator = trained_translator.replace(about=CAPTIONS)
    translator.save(tmp_path / "a.keras")
    loaded = Translator.load(tmp_path / "a.keras")
    for each in (loaded, translator.copy(), translator.in_float32()):
        assert each.about == CAPTIONS
    assert trained_translator.about == About()
