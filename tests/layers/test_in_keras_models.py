"""The layers inside Keras's own models, wrappers and converters."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from checks import randomize

from keras_vanilla.layers import (
    EncoderLayer,
    FeedForward,
    PositionalEncoding,
    TokenEmbedding,
    multi_head_attention,
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


def large_bias(scores, mask):
    """The softmax with -1e9 added to masked scores, as attention is often written."""
    bias = keras.ops.cast(keras.ops.logical_not(mask), scores.dtype) * -1e9
    return keras.ops.softmax(scores + bias)


@pytest.mark.parametrize("is_bounded", [True, False])
def test_masked_scores_leave_8_bits_for_the_others(is_bounded, monkeypatch):
    """TensorFlow's own full-integer conversion of a model with padding."""
    if not is_bounded:
        monkeypatch.setattr(multi_head_attention, "masked_softmax", large_bias)
    ids = keras.Input((S,), dtype="int32")
    x = PositionalEncoding()(TokenEmbedding(V, 2 * D)(ids))
    model = randomize(keras.Model(ids, EncoderLayer(4, d_ff=24)(x)[:, 0]))
    lengths = RANDOM.integers(2, S + 1, (100, 1))
    rows = RANDOM.integers(1, V, (100, S)) * (np.arange(S) < lengths)
    rows = rows.astype("int32")
    expected = model.predict(rows, verbose=0)
    outputs = run_in_integers(model, rows)
    error = np.sqrt(np.mean((outputs - expected) ** 2) / np.mean(expected**2))
    assert bool(error < 0.15) == is_bounded, error


def run_in_integers(model, rows):
    """The outputs of a model that is converted to 8-bit integers alone."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([row[None]] for row in rows)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    interpreter = Interpreter(model_content=converter.convert())
    interpreter.allocate_tensors()
    (inputs,), (outputs,) = (
        interpreter.get_input_details(),
        interpreter.get_output_details(),
    )
    results = []
    for row in rows:
        interpreter.set_tensor(inputs["index"], row[None])
        interpreter.invoke()
        results.append(interpreter.get_tensor(outputs["index"])[0].copy())
    return np.array(results)
