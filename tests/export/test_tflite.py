from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
import word_reversal
from ai_edge_litert.interpreter import Interpreter
from checks import randomize
from near_ties import assert_same_but_for_near_ties

from keras_vanilla import export
from keras_vanilla._operators import Operators, current_operators
from keras_vanilla.decoding import greedy, greedy_search
from keras_vanilla.export import conversion, to_tflite
from keras_vanilla.export.config import ExportConfig, Limits
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.translation import About, Translator

UNTRAINED = {"form": "ids", "check": "structure"}


def run(path, sources):
    """Target ids of each source, by LiteRT alone."""
    runner = Interpreter(model_path=str(path)).get_signature_runner("translate_ids")
    length = runner.get_input_details()["source_ids"]["shape"][1]
    rows = []
    for source in sources:
        ids = np.zeros((1, length), "int32")
        ids[0, : len(source)] = source
        rows.append(runner(source_ids=ids)["ids"][0])
    return np.array(rows)


@pytest.fixture
def argmax_of_keras(monkeypatch):
    """Greedy search by `keras.ops.argmax`, which TensorFlow Lite has no builtin for."""

    def blockwise_top_k(logits, k):
        return None, keras.ops.expand_dims(keras.ops.argmax(logits, axis=-1), 1)

    monkeypatch.setattr(greedy, "blockwise_top_k", blockwise_top_k)


def test_float32_gives_the_ids_of_keras(
    trained_translator, float32_file, unseen_sentences
):
    sources = trained_translator.encode(unseen_sentences)
    expected = trained_translator.search(sources)
    assert len(np.unique(expected, axis=0)) > 150
    model = trained_translator.model
    received = run(float32_file, sources)
    assert_same_but_for_near_ties(model, sources, expected, received)


@pytest.mark.full
def test_without_any_padding_the_ids_are_the_same(
    trained_translator, float32_file, tmp_path
):
    texts = word_reversal.english_sentences(200, seed=3, lengths=[6])
    sources = trained_translator.encode(texts)
    length = len(sources[0])
    assert {len(source) for source in sources} == {length} and length < 29
    path = tmp_path / "exact.tflite"
    lengths = {"max_source_length": length, "max_length": 59}
    export.tflite(trained_translator, path, quantize=None, **UNTRAINED, **lengths)
    model, expected = trained_translator.model, trained_translator.search(sources)
    for received in (run(path, sources), run(float32_file, sources)):
        assert_same_but_for_near_ties(model, sources, expected, received)


def test_shapes_are_static_and_named(int8_file):
    interpreter = Interpreter(model_path=str(int8_file))
    signature = {"translate_ids": {"inputs": ["source_ids"], "outputs": ["ids"]}}
    assert interpreter.get_signature_list() == signature
    runner = interpreter.get_signature_runner("translate_ids")
    inputs, outputs = runner.get_input_details(), runner.get_output_details()
    for details, length in ((inputs["source_ids"], 29), (outputs["ids"], 59)):
        assert details["dtype"] == np.int32
        assert details["shape"].tolist() == details["shape_signature"].tolist()
        assert details["shape"].tolist() == [1, length]


@pytest.mark.full
def test_output_is_limited_as_in_keras(endless_translator, tmp_path):
    """By 50 more than the source's own length, and by what was asked for."""
    path, limits = tmp_path / "x.tflite", {"max_source_length": 11, "max_length": 54}
    export.tflite(endless_translator, path, quantize=None, **UNTRAINED, **limits)
    sources = [[7, 3], [7, 8, 9, 10, 3]]
    assert (run(path, sources) != 0).sum(axis=1).tolist() == [52, 54]
    (expected,) = endless_translator.search(sources[:1])
    assert (expected != 0).sum() == 52


@pytest.mark.full
def test_int8_agrees_with_keras_on_19_of_20_sentences(
    trained_translator, int8_file, unseen_sentences
):
    texts = unseen_sentences[:170]  # of lengths it was trained on
    sources = trained_translator.encode(texts)
    received = trained_translator.tokenizer.decode(run(int8_file, sources))
    expected = trained_translator.translate(texts)
    equal = sum(map(str.__eq__, received, expected))
    assert equal >= 0.95 * len(texts)


@pytest.mark.full
def test_other_operators_are_refused_by_name(
    small_translator, argmax_of_keras, tmp_path
):
    with pytest.raises(RuntimeError, match="builtin operators only.*: BitwiseAnd$"):
        export.tflite(small_translator, tmp_path / "model.tflite", **UNTRAINED)
    assert not list(tmp_path.iterdir())
    assert type(current_operators()) is Operators  # not those of phones


def test_what_the_converter_cannot_do_otherwise_is_one_line(
    small_translator, tmp_path, monkeypatch
):
    def fail():
        raise ValueError("out of luck\nand much more")

    unlucky = SimpleNamespace(target_spec=SimpleNamespace(), convert=fail)
    monkeypatch.setattr(
        tf.lite.TFLiteConverter, "from_saved_model", lambda *_, **__: unlucky
    )
    monkeypatch.setattr(conversion, "save_graph", lambda *_: ["translate"])
    with pytest.raises(RuntimeError, match="cannot convert the model: out of luck$"):
        export.tflite(small_translator, tmp_path / "model.tflite")


@pytest.mark.full
def test_separate_vocabularies_and_pre_norm(trained_translator, tmp_path):
    tokenizer = trained_translator.tokenizer
    model = Transformer(
        tokenizer.vocabulary_size,
        d_model=10,
        num_heads=5,
        d_ff=7,
        num_encoder_layers=1,
        num_decoder_layers=2,
        share_embeddings=False,
        normalize_first=True,
        output_bias=True,
    )
    randomize(model)
    path = tmp_path / "model.tflite"
    lengths = {"max_source_length": 13, "max_length": 13}
    export.tflite(
        Translator(tokenizer, model), path, quantize=None, **UNTRAINED, **lengths
    )
    sources = tokenizer.encode(word_reversal.english_sentences(20, seed=4))
    expected = np.asarray(
        greedy_search(
            model, keras.utils.pad_sequences(sources, 13, padding="post"), max_length=13
        )
    )
    received = run(path, sources)
    assert_same_but_for_near_ties(model, sources, expected, received)


@pytest.mark.full
def test_half_precision_is_exported_in_float32(
    trained_translator, unseen_sentences, tmp_path
):
    model = trained_translator.model
    half = Transformer.from_config({**model.get_config(), "dtype": "mixed_float16"})
    half.set_weights(model.get_weights())
    path = tmp_path / "model.tflite"
    translator = Translator(trained_translator.tokenizer, half)
    lengths = {"max_source_length": 29, "max_length": 59}
    export.tflite(translator, path, quantize=None, **UNTRAINED, **lengths)
    sources = trained_translator.encode(unseen_sentences[:50])
    expected = trained_translator.search(sources)
    assert_same_but_for_near_ties(model, sources, expected, run(path, sources))


@pytest.mark.parametrize(
    "name, arguments, error, message",
    [
        ("a.tflite", {"quantize": "int2"}, ValueError, "'int8', .*None. .*'int2'"),
        ("a.tflite", {"form": "tokens"}, ValueError, "`form` .* 'ids', .*'tokens'"),
        ("a.tflite", {"max_source_length": 0}, ValueError, "max_source_length.*: 0"),
        ("a.tflite", {"max_source_length": 61}, ValueError, "model's.* 60. .*: 61"),
        ("a.tflite", {"max_length": 0}, ValueError, "`max_length` must.*: 0"),
        ("a.tflite", {"max_length": 61}, ValueError, "`max_length` must.* 60. .*: 61"),
        ("a.tflite", {"target_prefix": ["een"]}, TypeError, "no argument 'target_pre"),
        ("a.tflite", {"no_repeat_ngram_size": 2}, TypeError, "no argument 'no_rep"),
        ("a.keras", {}, ValueError, "ends with .tflite. Received: .*a.keras"),
        ("a.tflite", {"examples": ["two " * 200]}, ValueError, "Sentence 1 has 800 b"),
        ("a.tflite", {"sample": ["one " * 200]}, ValueError, "takes at most"),
        ("a.tflite", {"beam_size": 0}, ValueError, "Received"),
        ("a.tflite", {"beam_size": 10**8}, ValueError, "Received"),
        ("a.tflite", {"length_penalty": -1.0}, ValueError, "Received"),
        ("a.tflite", {"max_bytes": 0}, ValueError, "Received"),
        ("a.tflite", {"max_bytes": 2**31}, ValueError, "Received"),
        ("a.tflite", {"max_length": 2**31}, ValueError, "Received"),
        ("a.tflite", {"max_length": 2.5}, ValueError, "Received"),
        ("a.tflite", {"form": "steps", "beam_size": 4}, ValueError, "Received"),
        ("a.tflite", {"source_language": "german"}, ValueError, "BCP-47 .*: 'german'"),
        (
            "a.tflite",
            {"model_licence": "MIT"},
            TypeError,
            "'model_licence'.*mean 'mod",
        ),
        ("a.tflite", {"config": None}, TypeError, "quantize=None. Received: None"),
    ],
)
def test_wrong_arguments_are_refused_before_the_conversion(
    trained_translator, tmp_path, monkeypatch, name, arguments, error, message
):
    monkeypatch.setattr(to_tflite, "convert", lambda *_: pytest.fail("it converts"))
    with pytest.raises(error, match=message):
        export.tflite(trained_translator, tmp_path / name, **arguments)
    assert not list(tmp_path.iterdir())


def test_another_backend_is_refused(trained_translator, tmp_path, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow .*'torch'"):
        export.tflite(trained_translator, tmp_path / "model.tflite")


def test_examples_of_the_translator_that_the_file_does_not_take_are_left_out(
    trained_translator,
):
    about = About(examples=["two trees", "two " * 200])
    translator = trained_translator.replace(about=about)
    limits = Limits.of_model(translator.model, ExportConfig(max_bytes=64))
    assert to_tflite._examples(translator, None, limits) == ["two trees"]
    assert to_tflite._examples(trained_translator, None, limits) == []
