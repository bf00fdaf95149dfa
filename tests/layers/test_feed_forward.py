import keras
import numpy as np
import pytest
import reference
from checks import (
    assert_close,
    check_layer,
    mask_of,
    randomize,
    weights_of,
    with_mask,
)

from keras_vanilla.layers import FeedForward

B, T, D, F = 2, 3, 5, 7


@pytest.fixture
def inputs():
    return np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")


@pytest.fixture
def layer(inputs):
    layer = FeedForward(F)
    layer(inputs)
    return randomize(layer)


def test_is_a_keras_layer(inputs, tmp_path):
    check_layer(
        FeedForward, {"d_ff": F, "activation": "gelu"}, {"inputs": inputs}, tmp_path
    )


def test_formula(layer, inputs):
    expected = reference.feed_forward(weights_of(layer), inputs.astype("float64"))
    assert_close(layer(inputs), expected, 1e-6)


def test_equals_two_convolutions_of_width_one(layer, inputs):
    inner, inner_bias, outer, outer_bias = layer.get_weights()
    first = keras.layers.Conv1D(F, 1, activation="relu")
    second = keras.layers.Conv1D(D, 1)
    second(first(inputs))
    first.set_weights([inner[None], inner_bias])
    second.set_weights([outer[None], outer_bias])
    assert_close(layer(inputs), second(first(inputs)), 1e-6)


def test_mask_is_passed_on(layer, inputs):
    mask = np.array([[True, True, False], [True, False, False]])
    np.testing.assert_array_equal(mask_of(layer(with_mask(inputs, mask))), mask)


def test_dropout_is_active_in_training_alone(inputs):
    layer = FeedForward(97, dropout=0.5, activation=lambda x: x * 0 + 1)
    layer(inputs)
    layer.set_weights(
        [np.zeros((D, 97)), np.zeros(97), np.ones((97, D)) / 97, np.zeros(D)]
    )
    np.testing.assert_allclose(layer(inputs), 1.0, atol=1e-6)
    np.testing.assert_allclose(layer(inputs, training=False), 1.0, atol=1e-6)
    kept = np.asarray(layer(inputs, training=True))[..., 0] * 97 / 2
    np.testing.assert_allclose(kept, np.round(kept), atol=1e-4)  # whole units, twice
    assert 20 < kept.mean() < 77 and len(set(kept.round().ravel())) > 1
