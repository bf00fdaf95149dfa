"""Translators, word alignment and scores."""

from keras_vanilla._about import About
from keras_vanilla.translation.batch_translation import Hypothesis
from keras_vanilla.translation.evaluation import (
    EvaluationResult,
    Score,
    SentenceScore,
    bleu_and_chrf,
    score,
    score_translations,
    worst_and_best,
)
from keras_vanilla.translation.translator import Translator

__all__ = [
    "About",
    "EvaluationResult",
    "Hypothesis",
    "Score",
    "SentenceScore",
    "Translator",
    "bleu_and_chrf",
    "score",
    "score_translations",
    "worst_and_best",
]
