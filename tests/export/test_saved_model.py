import json
import subprocess
import sys

import pytest
import tensorflow as tf
from near_ties import assert_same_but_for_near_ties
from word_reversal import padded

from keras_vanilla import _atomic_write, export

# This package cannot be imported there; Keras can, tensorflow-text itself needs it.
ELSEWHERE = """
import json, sys
sys.modules.update(keras_vanilla=None, sentencepiece=None)
import tensorflow as tf
import tensorflow_text
translate = tf.saved_model.load(sys.argv[1]).signatures["translate"]
texts = translate(tf.constant(json.load(sys.stdin)))["text"].numpy()
json.dump([text.decode() for text in texts], sys.stdout)
"""


@pytest.fixture(scope="module")
def loaded(saved_folder):
    import tensorflow_text  # noqa: F401  # its operations are in the graph

    return tf.saved_model.load(str(saved_folder))


@pytest.fixture(scope="module")
def translate(loaded):
    def run(texts):
        texts = loaded.signatures["translate"](tf.constant(texts, tf.string))["text"]
        return [text.decode() for text in texts.numpy()]

    return run


@pytest.fixture(scope="module")
def translate_ids(loaded):
    def run(source_ids):
        source_ids = tf.constant(source_ids, tf.int32)
        return loaded.signatures["translate_ids"](source_ids)["ids"].numpy()

    return run


def test_strings_are_translated_as_in_keras(
    trained_translator, translate, unseen_sentences
):
    texts = ["", *unseen_sentences, "   ", "Grüße 🙂", "two\tthree", "\u200b"]
    expected = trained_translator.translate(texts)
    assert len(set(expected)) > 150
    assert translate(texts) == expected


@pytest.mark.parametrize("extra", [0, 13])
def test_ids_are_those_of_keras_whatever_the_padding(
    trained_translator, translate_ids, unseen_sentences, extra
):
    sources = trained_translator.encode(unseen_sentences)
    assert_same_but_for_near_ties(
        trained_translator.model,
        sources,
        trained_translator.search(sources),
        translate_ids(padded(sources, extra)),
    )


def test_output_is_fifty_longer_than_source_up_to_max_length(translate_ids):
    assert translate_ids([[7, 3, 0]]).shape == (1, 53)
    assert translate_ids([[7, 3] + [0] * 20] * 2).shape == (2, 60)


def test_texts_without_pieces_give_no_text(translate):
    assert translate(["", " ", "one", "\t"]) == ["", "", "een", ""]
    assert translate([]) == []


@pytest.mark.full
def test_folder_runs_with_tensorflow_and_tensorflow_text_alone(
    trained_translator, saved_folder, unseen_sentences, tmp_path
):
    texts = unseen_sentences[:20] + [""]
    result = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(saved_folder)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == trained_translator.translate(texts)


def test_every_variable_is_written_once(trained_translator, saved_folder):
    path = str(saved_folder / "variables" / "variables")
    reader = tf.train.load_checkpoint(path)
    written = sum(
        reader.get_tensor(name).nbytes
        for name, _ in tf.train.list_variables(path)
        if name.endswith("VARIABLE_VALUE")
    )
    assert written == 4 * trained_translator.model.count_params()
    (data,) = (saved_folder / "variables").glob("*.data-*")
    assert written < data.stat().st_size < 1.1 * written  # and the object graph


def test_long_texts_of_batch_are_marked_and_others_translated(loaded):
    long_text = "one " * 60  # 61 tokens with the end
    texts = ["one", long_text, "", "two three", 9 * long_text]
    result = loaded.signatures["translate"](tf.constant(texts))
    assert result["too_long"].numpy().tolist() == [False, True, False, False, True]
    assert result["text"].numpy().tolist() == [b"een", b"", b"", b"drie twee", b""]
    alone = loaded.signatures["translate"](tf.constant(["one " * 59]))
    assert alone["text"].numpy()[0] and not alone["too_long"].numpy()[0]


def test_row_of_ids_that_is_too_long_is_refused_not_cut(translate_ids):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        translate_ids([[7] * 60 + [3], [7, 3] + [0] * 59])
    assert "A row of source_ids may have at most 60 tokens" in str(caught.value)
    assert translate_ids([[7, 3] + [0] * 59]).shape == (1, 60)  # pads do not count


def test_id_outside_the_vocabulary_is_refused(trained_translator, translate_ids):
    size = trained_translator.model.source_vocabulary_size
    for wrong in (-1, size):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            translate_ids([[7, wrong, 3]])
        assert f"at least 0 and below {size}. Received" in str(caught.value)
        assert f"[{wrong}]" in str(caught.value)


@pytest.mark.full
def test_failure_leaves_nothing_behind(trained_translator, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(_atomic_write, "_sync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        export.saved_model(trained_translator, tmp_path / "model")
    assert not list(tmp_path.iterdir())
