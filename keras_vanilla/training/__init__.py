"""Training: schedule, loss, metrics, checkpoints, and `train_translator`.

The loss, the schedule and the metrics need only Keras; everything else is imported on
first use.
"""

from keras_vanilla._lazy_names import lazy_names
from keras_vanilla.training.loss import SmoothedCrossentropy
from keras_vanilla.training.metrics import Perplexity, TokenAccuracy, TokenCrossentropy
from keras_vanilla.training.schedule import (
    Cooldown,
    TransformerSchedule,
    transformer_optimizer,
)

_LAZY = {
    "AverageCheckpoints": "callbacks",
    "Diverged": "resume.exact_resume",
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
    "SmoothedCrossentropy",
    "TokenAccuracy",
    "TokenCrossentropy",
    "TransformerSchedule",
    "transformer_optimizer",
    *_LAZY,
]

__getattr__ = lazy_names(__name__, _LAZY)
