"""The vanilla Transformer of "Attention Is All You Need" for Keras.

Importing this package registers every layer, model, loss, schedule and metric, so that
`keras.saving.load_model` needs nothing else. Exports, pictures and the quickstart are
imported when they are first used.
"""

import importlib

from keras_vanilla import layers, training
from keras_vanilla._version import __version__
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.translation.translator import Translator

_IMPORTED_WHEN_USED = (
    "data",
    "decoding",
    "distribution",
    "export",
    "models",
    "plots",
    "quickstart",
    "tokenizer",
    "translation",
)

__all__ = [
    "Transformer",
    "Translator",
    "__version__",
    "layers",
    "training",
    *_IMPORTED_WHEN_USED,
]


def __getattr__(name: str):
    if name not in _IMPORTED_WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
