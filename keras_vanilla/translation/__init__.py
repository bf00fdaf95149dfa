"""Text in, text out: the translator, its alignments and its scores."""

from keras_vanilla.translation.batch_translation import Hypothesis
from keras_vanilla.translation.ensembles import ensemble
from keras_vanilla.translation.evaluation import (
    EvaluationResult,
    Score,
    SentenceScore,
    bleu_and_chrf,
    score,
    worst_and_best,
)
from keras_vanilla.translation.shortlist import Shortlist
from keras_vanilla.translation.translator import Translator

__all__ = [
    "EvaluationResult",
    "Hypothesis",
    "Score",
    "SentenceScore",
    "Shortlist",
    "Translator",
    "bleu_and_chrf",
    "ensemble",
    "score",
    "worst_and_best",
]
