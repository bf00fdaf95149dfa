"""The Transformer: encoder and decoder as one Keras model."""

from keras_vanilla.models.fake_quantization import fake_quantize
from keras_vanilla.models.transformer import Transformer

__all__ = ["Transformer", "fake_quantize"]
