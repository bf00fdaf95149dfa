"""Layers that users make of ours, through documented methods alone."""

import keras
import numpy as np
import pytest
from checks import assert_close, randomize
from gated_layers import GatedDecoderLayer, GatedEncoderLayer
from keras import ops

from keras_vanilla.layers import DecoderLayer, EncoderLayer, MultiHeadAttention

B, T, S, N, D, F = 2, 7, 5, 4, 8, 13
INPUTS = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(B, S, D)).astype("float32")


@keras.saving.register_keras_serializable("tests.layers")
class RelativeAttention(MultiHeadAttention):
    """Adds a trained number per head and distance to the scores (T5's bias)."""

    def build(self, *shapes):
        super().build(*shapes)
        self.far = 3
        self.distances = self.add_weight(shape=(2 * self.far + 1, self.num_heads))

    def scores(self, query, key, index=0):
        rows = ops.arange(ops.shape(query)[2])[:, None] + index
        distance = ops.arange(ops.shape(key)[2])[None] - rows  # (T, S)
        distance = ops.clip(distance, -self.far, self.far) + self.far
        bias = ops.transpose(ops.take(self.distances, distance, axis=0), (2, 0, 1))
        return super().scores(query, key) + bias


def relative(base):
    """A layer of this class whose self-attention is relative."""

    class Layer(base):
        def make_attention(self, name, d_model):
            if name == "cross_attention":
                return super().make_attention(name, d_model)
            size = d_model // self.num_heads
            settings = {"name": name, "dtype": self.dtype_policy}
            return RelativeAttention(self.num_heads, size, **settings)

    return Layer


VARIANTS = {
    "gated": (GatedEncoderLayer, GatedDecoderLayer),
    "relative": (relative(EncoderLayer), relative(DecoderLayer)),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_of_extended_layer_equal_whole_sequence(variant):
    layer = VARIANTS[variant][1](N, d_ff=F, dropout=0.0)
    layer(INPUTS, MEMORY)
    randomize(layer)
    whole, cache = layer(INPUTS, MEMORY), layer.start_cache(MEMORY, max_length=T)
    for index in range(T):
        outputs, cache = layer.step(INPUTS[:, index : index + 1], cache, index)
        assert_close(outputs[:, 0], whole[:, index], 2e-6)


def test_kerass_attention_can_replace_ours():
    class WithKerass(EncoderLayer):
        def make_attention(self, name, d_model):
            return keras.layers.MultiHeadAttention(
                self.num_heads, d_model // self.num_heads, name=name
            )

    theirs = WithKerass(N, d_ff=F, dropout=0.0)
    ours = EncoderLayer(N, d_ff=F, dropout=0.0)
    theirs(INPUTS)
    ours(INPUTS)
    ours.set_weights(randomize(theirs).get_weights())
    mask = np.arange(T) < np.array([[T], [4]])
    for arguments in ({}, {"use_causal_mask": True}):
        expected = theirs(INPUTS, mask=mask, **arguments)
        actual = ours(INPUTS, mask=mask, **arguments)
        assert_close(actual[0], expected[0], 1e-6)
        assert_close(actual[1, :4], expected[1, :4], 1e-6)


@pytest.mark.parametrize("variant", ["gated", "relative"])
def test_extended_layers_are_saved_in_a_model(variant, tmp_path):
    layer = VARIANTS[variant][0]
    if variant == "relative":
        layer = keras.saving.register_keras_serializable("tests.layers")(layer)
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, layer(N, d_ff=F)(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded.layers[-1]) is layer
    np.testing.assert_array_equal(loaded(INPUTS), model(INPUTS))
