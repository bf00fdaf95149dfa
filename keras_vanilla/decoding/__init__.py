"""Search: from a model's next-token logits to whole sequences."""

from keras_vanilla.decoding.beam import beam_search
from keras_vanilla.decoding.compiled import CompiledSearch
from keras_vanilla.decoding.greedy import greedy_search
from keras_vanilla.decoding.sampling import sample
from keras_vanilla.decoding.trace import watch

__all__ = ["CompiledSearch", "beam_search", "greedy_search", "sample", "watch"]
