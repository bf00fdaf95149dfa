"""What every layer here has in common: its errors, its shapes, its saved precision."""

import random
import re
from collections.abc import Callable
from typing import Any

import keras

from keras_vanilla._checks import CheckedArguments, refuse_ragged
from keras_vanilla._types import Tensor


class Layer(CheckedArguments, keras.layers.Layer):
    """A Keras layer whose errors name the class that was called.

    Outputs have the shape of the first input unless a layer says otherwise.

    Raises:
        ValueError: if a call is given a ragged tensor.
    """

    def __call__(self, *args, **kwargs) -> Any:
        refuse_ragged(type(self).__name__, (*args, *kwargs.values()))
        return super().__call__(*args, **kwargs)

    def compute_output_shape(self, input_shape: tuple, *other_shapes: tuple) -> tuple:
        """The shape of the outputs, without returned attention weights."""
        return tuple(input_shape)

    def compute_output_spec(self, *args, **kwargs):
        if not self.built:  # a symbolic call builds it, and asks again
            args, kwargs = keras.tree.map_structure(_symbolic, (args, kwargs))
            return self(*args, **kwargs)

        def cast(x):  # as a call does
            return self.dtype_policy.convert_input(x, self.autocast, self.input_dtype)

        args, kwargs = keras.tree.map_structure(cast, (args, kwargs))
        # From `call` itself: with returned weights there is more than one output.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def _check_built(self):
        if not self.built:
            raise ValueError(
                f"The {type(self).__name__} has no weights yet: call or build it first."
            )

    def get_config(self) -> dict:
        config = super().get_config()
        policy = keras.dtype_policies.serialize(saved_policy(self, self.path))
        return {**config, "dtype": policy}


def _symbolic(x):
    """An array as a KerasTensor."""
    if not hasattr(x, "shape") or isinstance(x, keras.KerasTensor):
        return x
    return keras.KerasTensor(x.shape, keras.backend.standardize_dtype(x.dtype))


def check_same_sizes(axes: tuple[str, ...], **tensors: Tensor) -> None:
    """Refuses two tensors whose first axes differ, which backends may broadcast.

    A size that a graph does not know before it runs is not compared.

    Args:
        axes: names of the first axes, for the error.
        tensors: the two, by the names of the arguments.
    Raises:
        ValueError: if a size of the one is another than that of the other.
    """
    (name, x), (other_name, other) = tensors.items()
    for axis, *sizes in zip(axes, x.shape, other.shape, strict=False):
        if all(isinstance(size, int) for size in sizes) and sizes[0] != sizes[1]:
            raise ValueError(
                f"`{name}` and `{other_name}` must have the same {axis}. Received: "
                f"shapes {tuple(x.shape)} and {tuple(other.shape)}"
            )


def check_initializer(initializer: str | Callable | None) -> str | Callable | None:
    """The `kernel_initializer` as it is, which sub-layers read when they are built.

    Raises:
        ValueError: if Keras does not know it.
    """
    # An initializer without a seed draws one when it is made. A check draws nothing, so
    # that `keras.utils.set_random_seed` gives the weights that it has always given.
    state = random.getstate()
    try:
        keras.initializers.get(initializer)
    finally:
        random.setstate(state)
    return initializer


def policy_for(owner: keras.layers.Layer, name: str) -> keras.DTypePolicy:
    """The policy of a new sub-layer, which may have been quantised when it was saved.

    A sub-layer that looked it up in the map itself could not be saved again: Keras 3.15
    asks the map as a whole whether the layer is quantised.

    Args:
        owner: the layer that is built.
        name: str. The sub-layer's name.
    """
    policy = owner.dtype_policy
    is_map = isinstance(policy, keras.dtype_policies.DTypePolicyMap)
    return policy[f"{owner.path}/{name}"] if is_map else policy


def saved_policy(owner: keras.layers.Layer, path: str | None) -> keras.DTypePolicy:
    """A policy that gives each quantised sub-layer its own again when it is loaded.

    Args:
        owner: the layer or model that holds them, at any depth.
        path: its path, which may be another one where it is loaded.
    """
    prefix = f"{path}/" if path else ""
    quantised = {
        f"(.*/)?{re.escape(layer.path.removeprefix(prefix))}": _own_policy(layer)
        for layer in owner._flatten_layers(include_self=False)
        if layer.quantization_mode
    }
    policy = getattr(owner.dtype_policy, "default_policy", owner.dtype_policy)
    if not quantised:
        return policy
    return keras.dtype_policies.DTypePolicyMap(policy, quantised)


def _own_policy(layer):
    """The policy of one layer, also where several share a `DTypePolicyMap`."""
    policy = layer.dtype_policy
    is_map = isinstance(policy, keras.dtype_policies.DTypePolicyMap)
    return policy[layer.path] if is_map else policy


def kernel_settings(initializer: str | Callable, regularizer: Any) -> dict[str, Any]:
    """What a sub-layer is given to make its kernel, as its own objects.

    One initializer that several kernels share would draw the same numbers for each.
    """
    if isinstance(initializer, keras.initializers.Initializer):
        initializer = initializer.clone()
    return {"kernel_initializer": initializer, "kernel_regularizer": regularizer}


def serialized_kernel_settings(layer: keras.layers.Layer) -> dict[str, Any]:
    """The same two settings for the config of the layer that holds them."""
    initializer = layer.kernel_initializer
    if not isinstance(initializer, str):
        initializer = keras.initializers.serialize(keras.initializers.get(initializer))
    return {
        "kernel_initializer": initializer,
        "kernel_regularizer": keras.regularizers.serialize(layer.kernel_regularizer),
    }
