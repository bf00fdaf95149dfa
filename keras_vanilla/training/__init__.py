"""Training: schedule, loss, metrics, checkpoints, and `train_translator`.

All names are imported on first use, so that the command line reads `TrainingConfig`
without Keras.
"""

from keras_vanilla._lazy_names import lazy_names

_LAZY = {
    "AverageCheckpoints": "callbacks",
    "Cooldown": "schedule",
    "Diverged": "resume.exact_resume",
    "ExactResume": "resume.exact_resume",
    "Interrupted": "run",
    "Perplexity": "metrics",
    "SmoothedCrossentropy": "loss",
    "TokenAccuracy": "metrics",
    "TokenCrossentropy": "metrics",
    "TrainingConfig": "config",
    "TransformerSchedule": "schedule",
    "TranslationScore": "callbacks",
    "compile_for_training": "compilation",
    "new_translator": "untrained",
    "train_translator": "train",
    "transformer_optimizer": "schedule",
}

__all__ = list(_LAZY)

__getattr__ = lazy_names(__name__, _LAZY)
