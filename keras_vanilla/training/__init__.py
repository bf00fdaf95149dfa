"""Training: schedule, loss, metrics, checkpoints, and `train_translator`.

The loss, schedule and metrics load with the package, so that compiled models can be
read; what needs more than Keras is loaded when it is asked for.
"""

import importlib

from keras_vanilla.training.callbacks import AverageCheckpoints
from keras_vanilla.training.loss import SmoothedCrossentropy
from keras_vanilla.training.metrics import Perplexity, TokenAccuracy, TokenCrossentropy
from keras_vanilla.training.schedule import TransformerSchedule, adam

_LAZY = {
    "Diverged": "resume.exact_resume",
    "ExactResume": "resume.exact_resume",
    "Interrupted": "run",
    "TranslationScore": "validation",
    "compile_for_training": "run",
    "new_translator": "train",
    "train_translator": "train",
}

__all__ = [
    "AverageCheckpoints",
    "Perplexity",
    "SmoothedCrossentropy",
    "TokenAccuracy",
    "TokenCrossentropy",
    "TransformerSchedule",
    "adam",
    *_LAZY,
]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
