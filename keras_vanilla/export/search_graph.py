"""What every exported file runs: the search, over a model's raw variables."""

from types import SimpleNamespace

import keras
import tensorflow as tf

from keras_vanilla.decoding import greedy_search

_SEARCHED = ("encode", "start_cache", "decode_step", "pad_id", "start_id", "end_id")


class SearchGraph(tf.Module):
    """Maps source ids to target ids inside a TensorFlow graph.

    Holds the model's variables as they are: of a Keras model inside a `tf.Module`
    TensorFlow says that it captures an untracked resource.

    Args:
        model: Transformer that computes in float32.
        max_length: int or None. No output is longer, whatever the model allows.
    Call arguments:
        source_ids: int32 tensor (B, S).
    Returns:
        Int32 tensor (B, L), L = min(S + 50, max_length).
    Raises:
        RuntimeError: if Keras does not run on TensorFlow.
    """

    def __init__(self, model, max_length=None):
        super().__init__()
        _require_tensorflow()
        self.weights = [weight.value for weight in model.weights]
        searched = SimpleNamespace(
            **{name: getattr(model, name) for name in _SEARCHED},
            max_length=min(max_length or model.max_length, model.max_length),
        )
        self._search = lambda source_ids: greedy_search(searched, source_ids)

    def __call__(self, source_ids):
        return self._search(source_ids)


def in_float32(model):
    """The model itself, or a copy that computes in float32 with the same weights.

    Exported files compute in float32 whatever precision the model was trained with.
    """
    if model.compute_dtype == "float32":
        return model
    copy = type(model).from_config({**model.get_config(), "dtype": "float32"})
    copy.set_weights(model.get_weights())
    return copy


def _require_tensorflow():
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            "Export needs Keras on TensorFlow: set KERAS_BACKEND=tensorflow before "
            f"Keras is imported. Received: backend {backend!r}"
        )
