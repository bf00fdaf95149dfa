"""A file in which nothing is said four times in a row says what Keras says."""

import pytest
from checks import randomize
from repeated_tokens import loops
from text_form import TextForm
from tiers import in_full

from keras_vanilla import export, probing
from keras_vanilla.cli import main
from keras_vanilla.decoding import DecodingConfig
from keras_vanilla.export.metadata.description import read_description
from keras_vanilla.models import Transformer
from keras_vanilla.translation import Translator

SMALL = {"max_bytes": 100, "max_source_length": 40, "max_length": 59}
REPEATED = "one one one one one one"


@pytest.fixture(scope="module")
def translator(trained_translator):
    """One with weights at random, which says the same again and again."""
    size = trained_translator.tokenizer.vocabulary_size
    model = Transformer.from_preset("tiny", source_vocabulary_size=size)
    return Translator(trained_translator.tokenizer, randomize(model, seed=3))


@pytest.mark.parametrize("beam_size", [1, *in_full(3)])
def test_the_file_says_what_keras_says(
    translator, tmp_path, beam_size, unseen_sentences
):
    path = tmp_path / "x.tflite"
    settings = {"quantize": None, "check": "structure", "beam_size": beam_size, **SMALL}
    export.tflite(translator, path, no_loops=True, **settings)
    description = read_description(path)
    assert description.no_loops and "without loops" in description.search
    assert description.oldest_runtime == "2.13"
    run, changed = TextForm(path), 0
    for text in [*unseen_sentences[:12], REPEATED]:
        sources = translator.encode([text])
        config = {"beam_size": beam_size, "max_length": min(59, len(sources[0]) + 50)}
        free, guarded = (
            translator.search(sources, DecodingConfig(no_loops=no_loops, **config))
            for no_loops in (False, True)
        )
        free, guarded = free[0].tolist(), guarded[0].tolist()
        outputs = run(text)
        received = [token for token in outputs["ids"].tolist() if token]
        (expected,) = translator.translate([text], no_loops=True, **config)
        assert outputs["text"] == expected
        assert received == [token for token in guarded if token]
        if text == REPEATED:  # the text itself repeats something
            assert guarded == free
        else:
            assert not loops(received)
            assert not probing.loops(text, expected)
            changed += guarded != free
    assert changed > 6


@pytest.mark.full
def test_on_the_command_line(trained_translator, tmp_path, capfd):
    model, path = tmp_path / "model.keras", tmp_path / "x.tflite"
    trained_translator.save(model)
    command = ["export", str(model), str(path), "--no-loops", "--max-length", "59"]
    assert main(command) in (0, None)
    assert read_description(path).no_loops
    capfd.readouterr()
    command = ["export", str(model), "y.tflite", "--form", "steps", "--no-loops"]
    assert main(command) == 1
    assert "takes no settings of a search" in capfd.readouterr().err
