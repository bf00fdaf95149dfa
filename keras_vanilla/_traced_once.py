"""What compiles a search: TensorFlow once for all shapes, JAX once per shape."""

from collections.abc import Callable
from typing import Any

import keras


def trace_for_all_shapes(model: keras.Model, inputs: dict[str, Any]) -> None:
    """Makes the graph of `predict_on_batch` at once for inputs of every size.

    Keras has it traced for the first shape, again for one that differs, and again when
    another dimension does. Each tracing of a search takes seconds, and TensorFlow,
    which counts them over all models of a process, warns of the fifth.

    Only TensorFlow traces in this way; on other backends nothing is done.

    Args:
        model: compiled keras.Model.
        inputs: dict of arrays, or of tuples of them, as for `predict_on_batch`; later
            ones have the same names, dtypes and numbers of dimensions.
    """
    if keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    model.make_predict_function()  # unless there is one
    if isinstance(model.predict_function, tf.types.experimental.PolymorphicFunction):
        specs = keras.tree.map_structure(
            lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), inputs
        )
        traced = model.predict_function.get_concrete_function([(specs,)])
        model.predict_function = traced


def jitted_by_jax(model: keras.Model) -> Callable:
    """`stateless_call` of a model, compiled by JAX for each shape.

    Keras's `predict_on_batch` deletes the weights, which other threads may read, and
    replaces them by the same.

    Args:
        model: keras.Model, on the JAX backend.
    """
    import jax

    return jax.jit(model.stateless_call)
