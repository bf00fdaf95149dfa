"""Files in float32 translate as Keras; what cannot be converted is named."""

import keras
import numpy as np
import pytest
import word_reversal
from checks import randomize
from near_ties import assert_same_but_for_near_ties
from text_form import TextForm

from keras_vanilla import export
from keras_vanilla._operators import Operators, current_operators
from keras_vanilla.decoding import greedy
from keras_vanilla.export import to_tflite
from keras_vanilla.export.config import ExportConfig
from keras_vanilla.export.to_tflite import described
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.translation import About, Translator

UNTRAINED = {"check": "structure", "quantize": None}


def run(path, texts):
    """Target ids of each text, by LiteRT alone."""
    translate = TextForm(path)
    return np.array([translate(text)["ids"] for text in texts])


def check(translator, path, texts, **search):
    """The file translates as Keras."""
    sources = translator.tokenizer.encode(texts)
    expected = translator.search(sources, **search)
    model = translator.model
    assert_same_but_for_near_ties(model, sources, expected, run(path, texts))
    return expected


def test_float32_gives_ids_of_keras(trained_translator, float32_file, unseen_sentences):
    ids = check(trained_translator, float32_file, unseen_sentences)
    assert len(np.unique(ids, axis=0)) > 150


@pytest.mark.full
def test_output_is_limited_as_in_keras(endless_translator, tmp_path):
    """By 50 more than the source's own length, and by the file's limit."""
    path, limits = tmp_path / "x.tflite", {"max_source_length": 11, "max_length": 54}
    export.tflite(endless_translator, path, **UNTRAINED, **limits)
    texts = ["one", "one two three four"]
    sources = endless_translator.encode(texts)
    assert list(map(len, sources)) == [2, 5]
    assert (run(path, texts) != 0).sum(axis=1).tolist() == [52, 54]
    (expected,) = endless_translator.search(sources[:1])
    assert (expected != 0).sum() == 52


@pytest.mark.full
def test_other_operators_are_refused_by_name(small_translator, tmp_path, monkeypatch):
    """TensorFlow Lite has no builtin for `keras.ops.argmax`."""

    def blockwise_top_k(logits, k):
        return None, keras.ops.expand_dims(keras.ops.argmax(logits, axis=-1), 1)

    monkeypatch.setattr(greedy, "blockwise_top_k", blockwise_top_k)
    with pytest.raises(RuntimeError, match="builtin operators only.*: BitwiseAnd$"):
        export.tflite(small_translator, tmp_path / "model.tflite", **UNTRAINED)
    assert not list(tmp_path.iterdir())
    assert type(current_operators()) is Operators  # not those of phones


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
    translator = Translator(tokenizer, randomize(model))
    path, lengths = tmp_path / "model.tflite", {"max_length": 13}
    export.tflite(translator, path, max_source_length=13, **UNTRAINED, **lengths)
    texts = word_reversal.english_sentences(20, seed=4)
    check(translator, path, texts, **lengths)


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
    export.tflite(translator, path, **UNTRAINED, **lengths)
    check(trained_translator, path, unseen_sentences[:50])


def test_refused_sample_is_not_converted(trained_translator, tmp_path, monkeypatch):
    monkeypatch.setattr(to_tflite, "convert", lambda *_: pytest.fail("it converts"))
    with pytest.raises(ValueError, match="`sample`"):
        export.tflite(trained_translator, tmp_path / "x.tflite", sample=[])
    assert not list(tmp_path.iterdir())


def test_description_has_limits_search_and_examples_that_fit(trained_translator):
    translator = trained_translator.replace(
        about=About(examples=["two trees", "two " * 200])
    )
    config = ExportConfig.of(max_source_length=9, beam_size=2, data="made up")
    description = described(translator, "numbers", config)
    assert description.name == "numbers" and description.data == "made up"
    assert description.examples == ["two trees"]
    limits = description.max_source_tokens, description.max_output_tokens
    assert limits == (9, 59) and description.max_bytes == 512
    assert description.decoding == config.decoding
    assert description.end_id == translator.model.end_id
    assert description.parameters == translator.model.count_params()
