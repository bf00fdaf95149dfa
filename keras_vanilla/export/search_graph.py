"""The search inside exported files."""

from typing import Any

import tensorflow as tf
from keras import ops

from keras_vanilla.decoding import DecodingConfig, run_search
from keras_vanilla.decoding.attended_source import AttendedSource
from keras_vanilla.decoding.searched_model import ModelAround
from keras_vanilla.models.transformer import Transformer

_SEGMENT = 12  # positions by which the caches grow


class SearchGraph(tf.Module):
    """Maps source ids to target ids inside a TensorFlow graph.

    It tracks the model's variables directly, because TensorFlow warns about an
    untracked resource if a Keras model is inside a `tf.Module`.

    Args:
        model: Transformer that computes in float32.
        decoding: DecodingConfig.
        max_length: int or None. Maximum output length, in addition to the model's.
        return_notes: bool. Whether to return notes on each token.
        first_source: int or None. Note the source token that each token attends to
            most, counted from this one on; see `AttendedSource`.
    Call arguments:
        source_ids: int32 tensor (B, S).
    Returns:
        Int32 tensor (B, L), L = min(S + 50, max_length), and float32 scores (B,), the
        log-probabilities, in beam search divided by the length normalization. With
        `return_notes` also a dict of notes (B, L): "log_probs", and with
        `first_source` also "attended".
    """

    def __init__(
        self,
        model: Transformer,
        decoding: DecodingConfig,
        max_length: int | None = None,
        return_notes: bool = False,
        first_source: int | None = None,
    ):
        super().__init__()
        self.weights = [weight.value for weight in model.weights]
        if first_source is not None:
            model = AttendedSource(model, first=first_source)
        self._model = _GrowingCaches(model, max_length)
        self._settings = {"config": decoding, "return_notes": return_notes}

    def __call__(self, source_ids: tf.Tensor) -> Any:
        settings = {"return_scores": True, **self._settings}
        return run_search(self._model, source_ids, **settings)


class _GrowingCaches(ModelAround):
    """A model for a search, with caches that grow as the search proceeds.

    Each step copies its caches and attends to all their positions, so they should be
    little longer than the output so far.
    """

    def __init__(self, model, max_length):
        super().__init__(model)
        self.max_length = min(max_length or model.max_length, model.max_length)

    def start_cache(self, memory, memory_mask, max_length, beam_size=None):
        """Returns caches without positions."""
        empty = 0 * tf.shape(memory)[1]  # a dynamic length in the graph
        cache = self._model.start_cache(memory, memory_mask, empty, beam_size)
        return cache._replace(removed=empty) if cache.is_shared else cache

    def while_loop(self, unfinished, step, state):
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
