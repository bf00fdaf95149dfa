"""A gated feed-forward network, and layers that have it, as users would write them."""

import keras
from keras import ops

from keras_vanilla.layers import DecoderLayer, EncoderLayer


@keras.saving.register_keras_serializable("gated_layers")
class GatedFeedForward(keras.layers.Layer):
    """(silu(x W1) * x W2) W3, of Shazeer 2020."""

    def __init__(self, d_ff, **kwargs):
        super().__init__(**kwargs)
        self.d_ff, self.supports_masking = d_ff, True

    def build(self, input_shape):
        shape = (input_shape[-1], self.d_ff)
        self.gate = self.add_weight(shape=shape, name="gate")
        self.inner = self.add_weight(shape=shape, name="inner")
        self.outer = self.add_weight(shape=shape[::-1], name="outer")

    def call(self, x):
        gated = ops.silu(ops.matmul(x, self.gate)) * ops.matmul(x, self.inner)
        return ops.matmul(gated, self.outer)


class Gated:
    def make_feed_forward(self, d_model):
        return GatedFeedForward(self.d_ff, name="feed_forward", dtype=self.dtype_policy)


@keras.saving.register_keras_serializable("gated_layers")
class GatedEncoderLayer(Gated, EncoderLayer):
    pass


@keras.saving.register_keras_serializable("gated_layers")
class GatedDecoderLayer(Gated, DecoderLayer):
    pass


@keras.saving.register_keras_serializable("gated_layers")
def gated_decoder_layer(**arguments):
    return GatedDecoderLayer(**arguments)
