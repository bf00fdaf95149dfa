"""Search algorithms: next-token logits to sequences."""

from keras_vanilla.decoding.attended_source import AttendedSource
from keras_vanilla.decoding.beam import beam_search
from keras_vanilla.decoding.cache import Cache
from keras_vanilla.decoding.compiled import CompiledSearch
from keras_vanilla.decoding.config import DecodingConfig
from keras_vanilla.decoding.greedy import greedy_search
from keras_vanilla.decoding.loops import LoopGuard
from keras_vanilla.decoding.sampling import sample
from keras_vanilla.decoding.search import run_search
from keras_vanilla.decoding.searched_model import SearchedModel
from keras_vanilla.decoding.terms import Terms
from keras_vanilla.decoding.trace import SearchTrace, trace_search

__all__ = [
    "AttendedSource",
    "Cache",
    "CompiledSearch",
    "DecodingConfig",
    "LoopGuard",
    "SearchTrace",
    "SearchedModel",
    "Terms",
    "beam_search",
    "greedy_search",
    "run_search",
    "sample",
    "trace_search",
]
