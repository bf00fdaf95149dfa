"""Search: from a model's next-token logits to whole sequences."""

from keras_vanilla.decoding.compiled import CompiledSearch
from keras_vanilla.decoding.greedy import greedy_search

__all__ = ["CompiledSearch", "greedy_search"]
