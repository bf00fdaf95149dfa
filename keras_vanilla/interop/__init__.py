"""Trained models of other formats, to our layers and back."""

from keras_vanilla.interop.keras_layers import load_keras_layer
from keras_vanilla.interop.pytorch_layers import load_pytorch_layer

__all__ = ["load_keras_layer", "load_pytorch_layer"]
