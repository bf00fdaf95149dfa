"""Translates corpora, in this process or on many machines with Ray."""

from keras_vanilla.bulk.bulk_translator import BulkTranslator
from keras_vanilla.bulk.line_command import LineCommand
from keras_vanilla.bulk.line_translation import LineTranslation
from keras_vanilla.bulk.line_translators import open_line_translator
from keras_vanilla.bulk.shards import translate_shards

__all__ = [
    "BulkTranslator",
    "LineCommand",
    "LineTranslation",
    "open_line_translator",
    "translate_shards",
]
