"""Parallel text, and batches of ids made of it."""

from keras_vanilla.data.batching import batches
from keras_vanilla.data.cache import TokenCache
from keras_vanilla.data.corpus import ParallelCorpus

__all__ = ["ParallelCorpus", "TokenCache", "batches"]
