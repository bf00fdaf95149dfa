"""The base class of all layers here: errors and output shapes."""

import math
import random
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_vanilla._checks import CheckedArguments, refuse_ragged
from keras_vanilla._types import Tensor


class Layer(CheckedArguments, keras.layers.Layer):
    """A Keras layer whose errors name the class that was called.

    Outputs have the shape of the first input unless a subclass overrides this.

    Raises:
        ValueError: if an input is a ragged tensor, or a saved layer was quantised.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        refuse_quantised(self.dtype_policy)

    def __call__(self, *args, **kwargs) -> Any:
        refuse_ragged(type(self).__name__, (*args, *kwargs.values()))
        return super().__call__(*args, **kwargs)

    def compute_output_shape(self, input_shape: tuple, *other_shapes: tuple) -> tuple:
        """The shape of the outputs, not counting returned attention weights."""
        return tuple(input_shape)

    def compute_output_spec(self, *args, **kwargs):
        if not self.built:  # a symbolic call builds the layer, then returns here
            args, kwargs = keras.tree.map_structure(_symbolic, (args, kwargs))
            return self(*args, **kwargs)

        def cast(x):  # as a call does
            return self.dtype_policy.convert_input(x, self.autocast, self.input_dtype)

        args, kwargs = keras.tree.map_structure(cast, (args, kwargs))
        try:
            # Traces `call`, because returned weights are a second output.
            return keras.Operation.compute_output_spec(self, *args, **kwargs)
        except ValueError as error:
            # Keras says before it that this method must be implemented.
            raise ValueError(str(error).split("encountered:\n\n")[-1]) from None

    def _check_built(self):
        if not self.built:
            raise ValueError(
                f"The {type(self).__name__} has no weights yet: call or build it first."
            )


def _symbolic(x):
    """An array as a KerasTensor."""
    if not hasattr(x, "shape") or isinstance(x, keras.KerasTensor):
        return x
    return keras.KerasTensor(x.shape, keras.backend.standardize_dtype(x.dtype))


def check_shape(beginning: str, shape: tuple) -> None:
    """Refuses shapes that are not (batch, length, width), or whose width is unknown.

    Args:
        beginning: str. The error until "shape", such as "`query` must have".
        shape: tuple of ints and None.
    Raises:
        ValueError: if the shape is another one.
    """
    if len(shape) != 3 or shape[-1] is None:
        raise ValueError(
            f"{beginning} shape (batch, length, width), with a known width. "
            f"Received: {tuple(shape)}"
        )


def check_same_sizes(axes: tuple[str, ...], **tensors: Tensor) -> None:
    """Refuses two tensors whose first axes differ, which backends may broadcast.

    Sizes that are unknown while a graph is traced are not compared.

    Args:
        axes: names of the first axes, for the error.
        tensors: the two tensors, by argument name.
    Raises:
        ValueError: if the sizes of an axis differ.
    """
    (name, x), (other_name, other) = tensors.items()
    for axis, *sizes in zip(axes, x.shape, other.shape, strict=False):
        if all(isinstance(size, int) for size in sizes) and sizes[0] != sizes[1]:
            raise ValueError(
                f"`{name}` and `{other_name}` must have the same {axis}. Received: "
                f"shapes {tuple(x.shape)} and {tuple(other.shape)}"
            )


def rows_of(x: Tensor, axes: int = 1) -> tuple[Tensor, tuple]:
    """Joins the first axes, so that a matrix product is one of two matrices.

    On TensorFlow, Keras computes other products with `tensordot`, whose dozen operators
    are traced for each layer and run in each step of a search.

    Args:
        x: tensor (B, ..., D), or (B, ..., N, H) with `axes=2`.
        axes: int. Number of last axes that become one.
    Returns:
        Tensor (R, D) or (R, N H), and the sizes (B, ...) for `ops.reshape`.
    """
    shape = tuple(x.shape)
    sizes, width = shape[:-axes], math.prod(shape[-axes:])
    if sizes.count(None) == 1 and 0 not in sizes:
        sizes = tuple(-1 if size is None else size for size in sizes)
    elif None in sizes:
        sizes = tuple(ops.shape(x)[: len(sizes)])
    return ops.reshape(x, (-1, width)), sizes


def check_initializer(initializer: str | Callable | None) -> str | Callable | None:
    """Checks a `kernel_initializer` and returns it unchanged.

    Raises:
        ValueError: if Keras does not know it.
    """
    # Creating an initializer without a seed draws a random one. The state is restored,
    # so that the check does not change the weights after `set_random_seed`.
    state = random.getstate()
    try:
        keras.initializers.get(initializer)
    finally:
        random.setstate(state)
    return initializer


def refuse_quantised(policy: keras.DTypePolicy) -> None:
    """Refuses the dtype policy of layers that Keras's `quantize` has rounded.

    Raises:
        ValueError: if the policy, or one in a map of policies, is quantised.
    """
    is_map = isinstance(policy, keras.dtype_policies.DTypePolicyMap)
    for each in (policy, *(policy.values() if is_map else ())):
        if each.quantization_mode:
            raise ValueError(
                "Layers that Keras's `quantize` has rounded were removed in 0.8.0; "
                f"keras_vanilla 0.7.0 reads them. Received: dtype={each.name}"
            )


def kernel_settings(initializer: str | Callable, regularizer: Any) -> dict[str, Any]:
    """Kernel arguments of one sub-layer, with its own copy of the initializer.

    Kernels that share an initializer would all get the same numbers.
    """
    if isinstance(initializer, keras.initializers.Initializer):
        initializer = initializer.clone()
    return {"kernel_initializer": initializer, "kernel_regularizer": regularizer}


def serialized_kernel_settings(layer: keras.layers.Layer) -> dict[str, Any]:
    """The kernel initializer and regularizer, serialised for the layer's config."""
    initializer = layer.kernel_initializer
    if not isinstance(initializer, str):
        initializer = keras.initializers.serialize(keras.initializers.get(initializer))
    return {
        "kernel_initializer": initializer,
        "kernel_regularizer": keras.regularizers.serialize(layer.kernel_regularizer),
    }
