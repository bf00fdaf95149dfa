"""LoRA, as for the layers that ship with Keras; their `quantize` is not supported."""

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


def test_keras_quantize_warns_of_each_layer_and_changes_none():
    ids = keras.Input((None,), dtype="int32")
    x = EncoderLayer(N, d_ff=D)(TokenEmbedding(V, D)(ids))
    model = keras.Model(ids, x)
    before = array(model(IDS))
    with pytest.warns(UserWarning, match="Layer HeadProjection .*`quantize`"):
        model.quantize("int8")
    np.testing.assert_array_equal(array(model(IDS)), before)
