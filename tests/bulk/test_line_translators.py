"""Lines through a `.keras` file, a `.tflite` file and a SavedModel."""

import subprocess
import sys

import pytest
from tiers import in_full

from keras_vanilla.bulk import open_line_translator
from keras_vanilla.export import saved_model, tflite
from keras_vanilla.export.checks.runners import SavedModelFolder, TfliteFile
from keras_vanilla.translation.batch_translation import BatchTranslator
from keras_vanilla.translation.doubts import doubts_of

LONG = "one " * 300  # more than the model takes
KINDS = ["keras", "tflite", *in_full("saved_model")]


@pytest.fixture(scope="module", params=KINDS)
def model(request, trained_translator, tmp_path_factory):
    """The path of the trained translator as each kind of model."""
    if request.param in ("keras", "tflite"):
        names = {"keras": "trained_file", "tflite": "text_file"}
        return request.getfixturevalue(names[request.param])
    path = tmp_path_factory.mktemp("model") / f"translator.{request.param}"
    saved_model(trained_translator, path)
    return path


def test_lines_are_those_of_translator(model, trained_translator, unseen_sentences):
    lines = [*unseen_sentences[:30], "", "  "]
    results = open_line_translator(model)(lines)
    expected = trained_translator.translate(lines)
    assert [(each.text, each.problem) for each in results] == [
        (text, None) for text in expected
    ]
    for line, each in zip(lines, results, strict=True):
        by_texts = doubts_of(line, each.text) if line.strip() else []
        assert [x for x in each.doubts if x in ("missing", "unchanged")] == by_texts


def test_long_line_is_named_and_others_translated(
    model, trained_translator, unseen_sentences
):
    sentence = unseen_sentences[0]
    first, long, last = open_line_translator(model)([sentence, LONG, sentence])
    (expected,) = trained_translator.translate([sentence])
    assert first == last and (first.text, first.problem) == (expected, None)
    assert long.text == "" and "takes" in long.problem
    (alone,) = open_line_translator(model)([LONG])
    assert alone == long and open_line_translator(model)([]) == []


def test_blank_lines_do_not_run_model(model, monkeypatch):
    translate = open_line_translator(model)

    def refuse(*_, **__):
        raise AssertionError("the model ran")

    for name in ("translate_text", "translate_texts", "search_batch"):
        for kind in (TfliteFile, SavedModelFolder, BatchTranslator):
            monkeypatch.setattr(kind, name, refuse, raising=False)
    results = translate(["", " \t", "\u3000"])
    assert [(each.text, each.problem, [*each.doubts]) for each in results] == 3 * [
        ("", None, [])
    ]


def test_translation_without_end_is_named(trained_file, unseen_sentences):
    (result,) = open_line_translator(trained_file, max_length=2)(unseen_sentences[:1])
    assert result.text and "without an end" in result.problem


def test_beam_search_equals_that_of_translator(
    trained_file, trained_translator, unseen_sentences
):
    settings = {"beam_size": 3, "length_penalty": 1.0}
    lines = open_line_translator(trained_file, **settings)(unseen_sentences[:20])
    expected = trained_translator.translate(unseen_sentences[:20], **settings)
    assert [line.text for line in lines] == expected


@pytest.mark.full
def test_threads_are_chosen_before_tensorflow_computes(trained_file):
    code = (
        "import sys; from keras_vanilla.bulk import open_line_translator; "
        "import tensorflow as tf; open_line_translator(sys.argv[1], threads=1); "
        "print(tf.config.threading.get_intra_op_parallelism_threads())"
    )
    command = [sys.executable, "-c", code, str(trained_file)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split()[-1] == "1"


def test_late_threads_are_refused(trained_file):
    with pytest.raises(ValueError, match="before TensorFlow computes.*threads=7"):
        open_line_translator(trained_file, threads=7)


@pytest.mark.full
def test_file_of_steps_is_refused(small_translator, tmp_path):
    path = tmp_path / "steps.tflite"
    tflite(small_translator, path, form="steps", check="structure")
    with pytest.raises(ValueError, match="must take text. Received.*'steps'"):
        open_line_translator(path)
