"""Parallel text, and batches of ids made from it."""

from keras_vanilla.data.batching import Batches, batches
from keras_vanilla.data.corpus import ParallelCorpus, same_digits
from keras_vanilla.data.lines import FileLines
from keras_vanilla.data.token_cache import TokenCache

__all__ = [
    "Batches",
    "FileLines",
    "ParallelCorpus",
    "TokenCache",
    "batches",
    "same_digits",
]
