"""Text in, text out: the translator, its alignments and its scores."""

from keras_vanilla.translation.evaluation import score
from keras_vanilla.translation.translator import Translator

__all__ = ["Translator", "score"]
