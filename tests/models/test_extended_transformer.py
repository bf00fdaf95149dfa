"""Transformers of users: other layers, LoRA."""

import keras
import numpy as np
import pytest
from checks import array, assert_close, randomize
from gated_layers import GatedEncoderLayer, GatedFeedForward, gated_decoder_layer

from keras_vanilla import Transformer, Translator
from keras_vanilla.decoding import beam_search, greedy_search

V = 11
SIZES = {
    "source_vocabulary_size": V,
    "d_model": 8,
    "num_heads": 2,
    "d_ff": 13,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "dropout": 0.0,
    "max_length": 9,
}
IDS = {
    "source_ids": np.array([[5, 7, 3], [4, 3, 0]]),
    "target_ids": np.array([[2, 6], [2, 9]]),
}
LABELS = np.array([[6, 3], [9, 3]])
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}  # quick to trace


def gated_model(**settings):
    makers = {
        "encoder_layer": GatedEncoderLayer,
        "decoder_layer": gated_decoder_layer,
    }
    return randomize(Transformer(**{**SIZES, **makers, **settings}))


@pytest.mark.full
def test_transformer_of_other_layers_trains_and_loads(tmp_path):
    model = gated_model(**ONE_LAYER)
    for layer in (*model.encoder_layers, *model.decoder_layers):
        assert isinstance(layer.feed_forward, GatedFeedForward)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, run_eagerly=True)
    losses = model.fit(IDS, LABELS, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config()["encoder_layer"] == "gated_layers>GatedEncoderLayer"
    assert loaded.get_config()["decoder_layer"] == "gated_layers>gated_decoder_layer"
    np.testing.assert_array_equal(loaded(IDS), model(IDS))


def test_search_uses_steps_of_its_layers():
    model = gated_model(**ONE_LAYER)
    ids = array(greedy_search(model, IDS["source_ids"], max_length=6), "int32")
    logits = array(model({**IDS, "target_ids": np.insert(ids, 0, 2, axis=1)[:, :-1]}))
    for row, chosen in zip(logits, ids, strict=True):
        end = list(chosen).index(3) + 1 if 3 in chosen else len(chosen)
        np.testing.assert_array_equal(row.argmax(-1)[:end], chosen[:end])
    beams, scores = beam_search(model, IDS["source_ids"], beam_size=3, max_length=6)
    assert len(beams) == len(scores) == 2


@pytest.mark.full
def test_exported_file_computes_its_layers(trained_translator, tmp_path):
    from text_form import TextForm

    from keras_vanilla import export

    tokenizer = trained_translator.tokenizer
    sizes = {"d_model": 64, "d_ff": 128, "num_heads": 4, **ONE_LAYER}
    model = gated_model(source_vocabulary_size=tokenizer.vocabulary_size, **sizes)
    path, translator = tmp_path / "model.tflite", Translator(tokenizer, model)
    export.tflite(translator, path, max_source_length=5, check="structure")
    ids = TextForm(path)("red one")["ids"][None]
    source_ids = np.array(translator.encode(["red one"]), "int32")
    expected = array(greedy_search(model, source_ids, max_length=ids.shape[1]), "int32")
    np.testing.assert_array_equal(ids, expected)


@pytest.mark.full
def test_lora_is_merged_in_copies_and_files(tmp_path):
    model = randomize(Transformer(**{**SIZES, **ONE_LAYER}))
    before = array(model(IDS))
    model.enable_lora(2)
    assert len(model.trainable_weights) == 2 * 2 * (1 + 2 * 1)  # of 3 attentions
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, run_eagerly=True)
    model.fit(IDS, LABELS, epochs=3, verbose=0)
    trained = array(model(IDS))
    assert np.abs(trained - before).max() > 1e-3
    assert model.copy().is_plain and not model.is_plain
    model.save(tmp_path / "model.keras")
    for merged in (model.copy(), keras.saving.load_model(tmp_path / "model.keras")):
        assert_close(merged(IDS), trained, 1e-5)
