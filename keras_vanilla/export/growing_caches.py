"""Caches of a search in a TensorFlow graph, as long as the output so far."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.export.search_graph import LimitedOutput

_SEGMENT = 12  # positions by which the caches grow


class GrowingCaches(LimitedOutput):
    """A model for a search, with caches that grow as the search proceeds.

    Each step copies its caches and attends to all their positions, so they should be
    little longer than the output so far.
    """

    def start_cache(
        self,
        memory: Tensor,
        memory_mask: Tensor,
        max_length: Tensor | int | None,
        beam_size: int | None = None,
    ) -> Any:
        """Returns caches without positions."""
        empty = 0 * tf.shape(memory)[1]  # a dynamic length in the graph
        cache = self._model.start_cache(memory, memory_mask, empty, beam_size)
        return cache._replace(removed=empty) if cache.is_shared else cache

    def while_loop(self, unfinished: Callable, step: Callable, state: Any) -> Any:
        """Runs `keras.ops.while_loop` in segments with increasingly long caches."""

        def segment(state):
            stop = state["index"] + _SEGMENT

            def within(state):
                return ops.logical_and(unfinished(state), state["index"] < stop)

            cache = state["cache"]
            if cache.is_shared:
                cache = _without_dead_ends(cache, state["index"])
            longer = {**state, "cache": _with_another_segment(cache)}
            return ops.while_loop(within, step, (longer,))

        return ops.while_loop(unfinished, segment, state)


def _without_dead_ends(cache, index):
    """Returns the cache without the positions that belong to no hypothesis any more.

    Soon all beams continue the same few hypotheses, so that hardly more than one
    position per step remains. Steps write K positions at a multiple of K, so up to
    K - 1 that belong to no hypothesis come first.
    """
    kept = tf.where(tf.reduce_any(cache.ancestors, axis=(0, 1)))  # (n, 1)
    kept = tf.cast(tf.squeeze(kept, 1), tf.int32)
    unused = -tf.size(kept) % cache.beam_size
    kept = tf.concat([tf.zeros([unused], tf.int32), kept], axis=0)
    is_used = tf.range(tf.size(kept)) >= unused
    past = tf.nest.map_structure(lambda x: tf.gather(x, kept, axis=2), cache.past)
    return cache._replace(
        past=past,
        ancestors=tf.gather(cache.ancestors, kept, axis=2) & is_used,
        removed=index - tf.size(kept) // cache.beam_size,
    )


def _with_another_segment(cache):
    """Returns the cache, extended by one segment of positions."""
    growth = _SEGMENT * cache.beam_size
    past = tf.nest.map_structure(
        lambda value: tf.pad(value, [[0, 0], [0, 0], [0, growth], [0, 0]]), cache.past
    )
    ancestors = cache.ancestors
    if cache.is_shared:  # PAD of booleans needs TensorFlow Lite 2.20
        longer = tf.pad(tf.cast(ancestors, tf.int32), [[0, 0], [0, 0], [0, growth]])
        ancestors = tf.cast(longer, tf.bool)
    return cache._replace(past=past, ancestors=ancestors)
