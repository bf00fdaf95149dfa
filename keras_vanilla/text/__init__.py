"""Text: SentencePiece tokenizers, parallel corpora, caches, and batches of ids."""

from keras_vanilla.text.batching import batches
from keras_vanilla.text.cache import TokenCache
from keras_vanilla.text.corpus import ParallelCorpus
from keras_vanilla.text.tokenizer import Tokenizer

__all__ = ["ParallelCorpus", "TokenCache", "Tokenizer", "batches"]
