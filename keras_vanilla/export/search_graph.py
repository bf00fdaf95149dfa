"""What every exported file runs: the search, over a model's raw variables."""

import keras
import tensorflow as tf
from keras import ops

from keras_vanilla.decoding import beam_search, greedy_search
from keras_vanilla.translation.translator import Translator

_STRETCH = 24  # positions by which caches grow; most sentences have no more


class SearchGraph(tf.Module):
    """Maps source ids to target ids inside a TensorFlow graph.

    Holds the model's variables as they are: of a Keras model inside a `tf.Module`
    TensorFlow says that it captures an untracked resource.

    Args:
        model: Transformer that computes in float32.
        max_length: int or None. No output is longer, whatever the model allows.
        beam_size: int. 1 is greedy search.
        length_penalty: float. Of beam search.
    Call arguments:
        source_ids: int32 tensor (B, S).
    Returns:
        Int32 tensor (B, L), L = min(S + 50, max_length); and float32 scores (B,), the
        log-probabilities, divided by the length penalty in beam search.
    Raises:
        RuntimeError: if Keras does not run on TensorFlow.
        ValueError: as `beam_search`.
    """

    def __init__(self, model, max_length=None, beam_size=1, length_penalty=0.6):
        super().__init__()
        _require_tensorflow()
        self.weights = [weight.value for weight in model.weights]
        searched = _Searched(model, max_length)

        def search(source_ids):
            if beam_size == 1:
                return greedy_search(searched, source_ids, return_scores=True)
            settings = {"beam_size": beam_size, "length_penalty": length_penalty}
            ids, scores = beam_search(searched, source_ids, n_best=1, **settings)
            return ids[:, 0], scores[:, 0]

        self._search = search

    def __call__(self, source_ids):
        return self._search(source_ids)


class _Searched:
    """A model as a search asks for it, with caches that grow as the search goes on.

    A step copies its caches and attends to all of them: they are to be little longer
    than what has been said.
    """

    def __init__(self, model, max_length):
        self.encode, self.decode_step = model.encode, model.decode_step
        self.pad_id, self.start_id = model.pad_id, model.start_id
        self.end_id = model.end_id
        self.max_length = min(max_length or model.max_length, model.max_length)
        self._start_cache = model.start_cache

    def start_cache(self, memory, memory_mask, max_length):
        """Caches of no position yet."""
        nothing = 0 * tf.shape(memory)[1]  # to the graph a length that may change
        return self._start_cache(memory, memory_mask, nothing)

    def while_loop(self, unfinished, step, state):
        """`keras.ops.while_loop` by stretches, each in longer caches."""

        def stretch(state):
            stop = state["index"] + _STRETCH
            cache = {
                name: _grown(value, name) for name, value in state["cache"].items()
            }

            def within(state):
                return ops.logical_and(unfinished(state), state["index"] < stop)

            return ops.while_loop(within, step, ({**state, "cache": cache},))

        return ops.while_loop(unfinished, stretch, state)


def _grown(value, name):
    """A cache's tensor with room for another stretch."""
    if "/self_" not in name:
        return value
    rows, heads, _, size = value.shape
    room = tf.zeros(
        [tf.shape(value)[0] if rows is None else rows, heads, _STRETCH, size]
    )
    return tf.concat([value, room], axis=2)


def in_float32(model):
    """The model itself, or a copy that computes in float32 with the same weights.

    Exported files compute in float32 whatever precision the model was trained with.
    """
    if model.compute_dtype == "float32":
        return model
    copy = type(model).from_config({**model.get_config(), "dtype": "float32"})
    copy.set_weights(model.get_weights())
    return copy


def translator_in_float32(translator):
    """The translator itself, or one whose model is as `in_float32` makes it."""
    model = in_float32(translator.model)
    if model is translator.model:
        return translator
    return Translator(translator.tokenizer, model)


def _require_tensorflow():
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            "Export needs Keras on TensorFlow: set KERAS_BACKEND=tensorflow before "
            f"Keras is imported. Received: backend {backend!r}"
        )
