"""The vanilla Transformer of "Attention Is All You Need" for Keras.

Importing this package imports the layers, and registers all other classes that a saved
file can contain, so that `keras.saving.load_model` needs nothing else. Everything else
is imported when it is first used.
"""

from typing import TYPE_CHECKING

from keras_vanilla._checks import BACKENDS, backend_missing
from keras_vanilla._lazy_names import lazy_names
from keras_vanilla._version import __version__

try:
    from keras_vanilla import layers
    from keras_vanilla._lazy_classes import register_lazily
except ModuleNotFoundError as error:
    backend = error.name.partition(".")[0]
    if backend not in BACKENDS:
        raise
    raise backend_missing(backend) from error

if TYPE_CHECKING:
    from keras_vanilla import (
        bulk,
        cli,
        data,
        decoding,
        distribution,
        export,
        interop,
        models,
        plots,
        pretrained,
        quickstart,
        tokenizer,
        training,
        translation,
        web,
    )
    from keras_vanilla.interop.translation_pipeline import pipeline
    from keras_vanilla.models.transformer import Transformer
    from keras_vanilla.translation.translator import Translator

__all__ = [
    "Transformer",
    "Translator",
    "__version__",
    "bulk",
    "cli",
    "data",
    "decoding",
    "distribution",
    "export",
    "interop",
    "layers",
    "models",
    "pipeline",
    "plots",
    "pretrained",
    "quickstart",
    "tokenizer",
    "training",
    "translation",
    "web",
]

_HOMES = {name: name for name in __all__ if name not in ("__version__", "layers")} | {
    "Transformer": "models.transformer",
    "Translator": "translation.translator",
    "pipeline": "interop.translation_pipeline",
}
__getattr__ = lazy_names(__name__, _HOMES)
register_lazily()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
