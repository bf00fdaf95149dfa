"""Translates corpora, in this process or on many machines with Ray."""

from keras_vanilla.bulk.line_translators import (
    BulkTranslator,
    LineTranslation,
    open_line_translator,
)
from keras_vanilla.bulk.shards import translate_shards

__all__ = [
    "BulkTranslator",
    "LineTranslation",
    "open_line_translator",
    "translate_shards",
]
