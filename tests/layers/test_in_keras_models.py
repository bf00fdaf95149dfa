"""The layers inside Keras's own models, wrappers and converters."""

import keras
import numpy as np
import pytest

from keras_vanilla.layers import (
    EncoderLayer,
    FeedForward,
    PositionalEncoding,
    TokenEmbedding,
)

pytestmark = pytest.mark.full
B, T, S, D, V = 2, 3, 5, 8, 11
RANDOM = np.random.default_rng(0)
INPUTS = RANDOM.normal(size=(B, T, S, D)).astype("float32")
IDS = RANDOM.integers(1, V, (B, S)) * (np.arange(S) < [[5], [2]])


@pytest.mark.parametrize(
    "make",
    [lambda: EncoderLayer(2, d_ff=7), lambda: FeedForward(7), PositionalEncoding],
)
def test_layer_is_distributed_over_time(make, tmp_path):
    layer, inputs = make(), keras.Input((None, S, D))
    model = keras.Model(inputs, keras.layers.TimeDistributed(layer)(inputs))
    outputs = model.predict(INPUTS, verbose=0)
    for t in range(T):
        np.testing.assert_allclose(outputs[:, t], layer(INPUTS[:, t]), atol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(INPUTS, verbose=0), outputs)


def test_sequential_model_of_layers_is_trained_and_saved(tmp_path):
    model = keras.Sequential(
        [
            TokenEmbedding(V, D),
            PositionalEncoding(),
            EncoderLayer(2, d_ff=7),
            FeedForward(13),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(3),
        ]
    )
    model.compile("adam", "mse", jit_compile=False)
    model.fit(IDS, np.zeros((B, 3)), verbose=0)
    longer = np.pad(IDS, ((0, 0), (0, 4)))
    expected = model.predict(IDS, verbose=0)
    np.testing.assert_allclose(model.predict(longer, verbose=0), expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(IDS), model(IDS))
