"""`quantize` and LoRA, as for the layers that ship with Keras."""

import keras
import numpy as np
import pytest
from checks import array, assert_close, randomize
from tiers import in_full

from keras_vanilla.layers import (
    DecoderLayer,
    EncoderLayer,
    MultiHeadAttention,
    PositionalEncoding,
    TokenEmbedding,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Layer .* `quantize` method"),
    pytest.mark.usefixtures("quantises_fast"),
]
B, T, N, D, V = 2, 5, 4, 128, 97
IDS = np.random.default_rng(0).integers(1, V, (B, T)).astype("int32")


def classifier():
    """Every layer, so that none is forgotten."""
    ids = keras.Input((None,), dtype="int32")
    x = PositionalEncoding()(TokenEmbedding(V, D)(ids))
    x = EncoderLayer(N, d_ff=4 * D, dropout=0.0)(x)
    x = DecoderLayer(N, d_ff=4 * D, dropout=0.0)(x, x)
    x = MultiHeadAttention(N, D // N)(x, x)
    model = keras.Model(ids, keras.layers.Dense(7)(x))
    return randomize(model)


def attention_layers(model):
    layers = model._flatten_layers()
    return [layer for layer in layers if isinstance(layer, MultiHeadAttention)]


@pytest.mark.full
def test_a_quantised_model_is_small_close_and_loads_again(tmp_path):
    model = classifier()
    before = array(model(IDS))
    model.save(tmp_path / "float.keras")
    model.quantize("int8")
    kernels = [weight for weight in model.weights if weight.name == "kernel"]
    assert len(kernels) == 4 * 4 + 2 * 2 + 1
    assert {weight.dtype for weight in kernels} == {"int8"}
    outputs = array(model(IDS))
    assert 0 < np.abs(outputs - before).max() < 0.1 * np.abs(before).max()
    model.save(tmp_path / "int8.keras")
    sizes = [(tmp_path / f"{n}.keras").stat().st_size for n in ("int8", "float")]
    assert sizes[0] <= 0.4 * sizes[1]
    loaded = keras.saving.load_model(tmp_path / "int8.keras")
    np.testing.assert_array_equal(array(loaded(IDS)), outputs)
    loaded.save(tmp_path / "again.keras")
    again = keras.saving.load_model(tmp_path / "again.keras")
    np.testing.assert_array_equal(array(again(IDS)), outputs)


@pytest.mark.full
@pytest.mark.parametrize("scope", ["a subclassed model", "another name"])
def test_a_quantised_layer_loads_where_its_path_is_another_one(scope, tmp_path):
    layer = EncoderLayer(N, d_ff=D, dropout=0.0)
    model = keras.Sequential([keras.Input((T, D)), layer], name="one")
    model.quantize("int8")
    config = layer.get_config()
    if scope == "another name":
        config["name"] = "other"
    copy = EncoderLayer.from_config(config)
    nested = keras.Sequential([keras.Input((T, D)), copy], name="two")
    nested.set_weights(model.get_weights())
    inputs = np.random.default_rng(0).normal(size=(B, T, D))
    np.testing.assert_array_equal(array(nested(inputs)), array(model(inputs)))


@pytest.mark.parametrize("merged_by", ["hand", *in_full("saving")])
def test_lora_trains_its_two_matrices_alone_and_is_merged_when_saved(
    merged_by, tmp_path
):
    model = classifier()
    before = array(model(IDS))
    for weight in model.weights:
        weight.trainable = False
    for attention in attention_layers(model):
        attention.query_dense.enable_lora(3)
        attention.value_dense.enable_lora(3)
    np.testing.assert_array_equal(array(model(IDS)), before)
    names = [weight.name for weight in model.trainable_weights]
    assert len(names) == 4 * 4 and set(names) == {"lora_kernel_a", "lora_kernel_b"}
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(IDS, np.ones((B, T, 7)), epochs=2, verbose=0)
    outputs = array(model(IDS))
    assert np.abs(outputs - before).max() > 1e-3
    if merged_by == "saving":
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        assert not any("lora" in weight.name for weight in loaded.weights)
        assert_close(loaded(IDS), outputs, 1e-5)
        return
    query = attention_layers(model)[0].query_dense
    product = array(query.lora_kernel_a) @ array(query.lora_kernel_b)
    assert_close(query.kernel, array(query._kernel) + product, 1e-6)


@pytest.mark.full
def test_lora_on_an_attention_that_is_quantised():
    model = classifier()
    model.quantize("int8")
    before = array(model(IDS))
    query = attention_layers(model)[0].query_dense
    query.enable_lora(3)
    assert_close(model(IDS), before, 1e-6)
    query.lora_kernel_b.assign(np.ones(query.lora_kernel_b.shape))
    assert np.abs(array(model(IDS)) - before).max() > 1e-3
