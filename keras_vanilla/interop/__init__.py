"""Converts trained models from other formats to our layers and back."""

from keras_vanilla.interop.ctranslate2 import from_ctranslate2
from keras_vanilla.interop.formats import read_translator, write_translator
from keras_vanilla.interop.hub import from_hub
from keras_vanilla.interop.keras_layers import load_keras_layer
from keras_vanilla.interop.marian import from_marian
from keras_vanilla.interop.marian_tokenizer import tokenizer_from_marian
from keras_vanilla.interop.pytorch import from_pytorch, to_pytorch
from keras_vanilla.interop.pytorch_layers import load_pytorch_layer
from keras_vanilla.interop.to_ctranslate2 import to_ctranslate2
from keras_vanilla.interop.to_marian import to_marian

__all__ = [
    "from_ctranslate2",
    "from_hub",
    "from_marian",
    "from_pytorch",
    "load_keras_layer",
    "load_pytorch_layer",
    "read_translator",
    "to_ctranslate2",
    "to_marian",
    "to_pytorch",
    "write_translator",
    "tokenizer_from_marian",
]
