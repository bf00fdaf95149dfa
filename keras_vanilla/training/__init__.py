"""Training: schedule, loss, metrics, checkpoints, and `train_translator`.

The loss, schedule and metrics load with the package, so that compiled models can be
read; what needs more than Keras is loaded when it is asked for.
"""

import importlib

from keras_vanilla.training.loss import RDropCrossentropy, SmoothedCrossentropy
from keras_vanilla.training.metrics import Perplexity, TokenAccuracy, TokenCrossentropy
from keras_vanilla.training.schedule import (
    Cooldown,
    TransformerSchedule,
    transformer_optimizer,
)
from keras_vanilla.training.word_level import WordLevelCrossentropy

_LAZY = {
    "AverageCheckpoints": "callbacks",
    "Diverged": "resume.diverged",
    "ExactResume": "resume.exact_resume",
    "Interrupted": "run",
    "TrainingConfig": "config",
    "TranslationScore": "callbacks",
    "compile_for_training": "compilation",
    "new_translator": "untrained",
    "train_translator": "train",
}

__all__ = [
    "Cooldown",
    "Perplexity",
    "RDropCrossentropy",
    "SmoothedCrossentropy",
    "TokenAccuracy",
    "TokenCrossentropy",
    "TransformerSchedule",
    "WordLevelCrossentropy",
    "transformer_optimizer",
    *_LAZY,
]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
