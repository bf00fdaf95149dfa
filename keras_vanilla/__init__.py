"""The vanilla Transformer of "Attention Is All You Need" for Keras.

Importing this package registers every layer, model, loss, schedule and metric, so that
`keras.saving.load_model` needs nothing else. The other parts load when they are used.
"""

import importlib
import sys
from pathlib import Path

from keras_vanilla._version import __version__

_HOMES = {
    "Transformer": "models.transformer",
    "Translator": "translation.translator",
    "layers": None,
    "training": None,
    "decoding": None,
    "data": None,
    "distribution": None,
    "models": None,
    "translation": None,
    "export": None,
    "plots": None,
    "quickstart": None,
    "tokenizer": None,
}
_REGISTERED = ("layers", "training", "Transformer", "Translator")

__all__ = ["__version__", *_HOMES]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOMES[name] or name}")
    return getattr(module, name) if _HOMES[name] else module


# The command line answers --help and finds wrong arguments before Keras takes seconds
# to load; everywhere else what can be in a saved file is registered now.
if Path(*sys.argv[:1]).stem != "keras-vanilla":
    globals().update({name: __getattr__(name) for name in _REGISTERED})
