"""Compiles a search, on TensorFlow once for all shapes, on JAX once per shape."""

from collections.abc import Callable
from typing import Any

import keras


def trace_for_all_shapes(model: keras.Model, inputs: dict[str, Any]) -> None:
    """Traces the graph of `predict_on_batch` once for inputs of all sizes.

    Keras traces it for the first shape, again for a different shape, and again when
    another dimension changes. Each trace of a search takes seconds. TensorFlow counts
    the traces of all models in a process, and warns at the fifth.

    On other backends, which do not trace in this way, this does nothing.

    Args:
        model: compiled keras.Model.
        inputs: dict of arrays, or of tuples of arrays, as for `predict_on_batch`. Later
            inputs must have the same names, dtypes and numbers of dimensions.
    """
    if keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    model.make_predict_function()  # unless it exists
    if isinstance(model.predict_function, tf.types.experimental.PolymorphicFunction):
        specs = keras.tree.map_structure(
            lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), inputs
        )
        traced = model.predict_function.get_concrete_function([(specs,)])
        model.predict_function = traced


def jitted_by_jax(model: keras.Model) -> Callable:
    """Returns `stateless_call` of a model, compiled by JAX for each shape.

    Keras's `predict_on_batch` is not used, because it replaces the weights by copies
    and deletes them while other threads may read them.

    Args:
        model: keras.Model on the JAX backend.
    """
    import jax

    return jax.jit(model.stateless_call)
