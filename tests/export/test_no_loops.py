"""A file in which nothing is said four times in a row says what Keras says."""

import pytest
from checks import randomize
from repeated_tokens import loops
from text_form import TextForm

from keras_vanilla import export, probing
from keras_vanilla.cli import main
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export.metadata.description import read_description
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator

SMALL = {"max_bytes": 100, "max_source_length": 40, "max_length": 59}
REPEATED = " ".join(["one"] * 10)


@pytest.fixture(scope="module")
def translator(trained_translator):
    """One with weights at random, which says the same again and again."""
    size = trained_translator.tokenizer.vocabulary_size
    model = Transformer.from_preset("tiny", source_vocabulary_size=size)
    return Translator(trained_translator.tokenizer, randomize(model, seed=3))


@pytest.mark.full
@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_file_says_what_keras_says(
    translator, tmp_path, beam_size, unseen_sentences
):
    path = tmp_path / "x.tflite"
    settings = {"quantize": None, "check": "structure", "beam_size": beam_size, **SMALL}
    export.tflite(translator, path, no_loops=True, **settings)
    description = read_description(path)
    assert description.no_loops and "without loops" in description.search
    assert description.oldest_runtime == "2.13"
    # Of each of them an output may have 59 tokens: one search finds them all.
    long = [text for text in unseen_sentences if len(translator.encode([text])[0]) > 9]
    texts = [*long[:12], REPEATED]
    config = {"beam_size": beam_size, "max_length": 59}
    found = [
        translator.search(
            translator.encode(texts), DecodingConfig(no_loops=no_loops, **config)
        )
        for no_loops in (False, True)
    ]
    translations = translator.translate(texts, no_loops=True, **config)
    run, changed = TextForm(path), 0
    for text, expected, *ids in zip(texts, translations, *found, strict=True):
        free, guarded = ([token for token in row.tolist() if token] for row in ids)
        outputs = run(text)
        received = [token for token in outputs["ids"].tolist() if token]
        assert outputs["text"] == expected
        assert received == guarded
        if text == REPEATED:  # the text itself repeats something
            assert guarded == free
        else:
            assert not loops(received)
            assert not probing.loops(text, expected)
            changed += guarded != free
    assert changed > 6


def test_a_form_without_a_search_has_no_such_option(trained_file, capfd):
    command = ["export", str(trained_file), "y.tflite", "--form", "steps"]
    assert main([*command, "--no-loops"]) == 1
    assert "takes no settings of a search" in capfd.readouterr().err
