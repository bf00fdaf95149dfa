"""Parallel text, and batches of ids made of it."""

from keras_vanilla.data.batching import batches
from keras_vanilla.data.cache import TokenCache
from keras_vanilla.data.corpus import ParallelCorpus
from keras_vanilla.data.lines import FileLines

__all__ = ["FileLines", "ParallelCorpus", "TokenCache", "batches"]
