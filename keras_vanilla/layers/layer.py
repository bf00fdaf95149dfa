"""What every layer here has in common: its errors, its shapes, its saved precision."""

import re
from collections.abc import Callable
from typing import Any

import keras

from keras_vanilla._checks import CheckedArguments


class Layer(CheckedArguments, keras.layers.Layer):
    """A Keras layer whose errors name the class that was called.

    Outputs have the shape of the first input unless a layer says otherwise.
    """

    def compute_output_shape(self, input_shape: tuple, *other_shapes: tuple) -> tuple:
        """The shape of the outputs, without returned attention weights."""
        return tuple(input_shape)

    def compute_output_spec(self, *args, **kwargs):
        # From `call` itself: with returned weights there is more than one output.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self) -> dict:
        config = super().get_config()
        policy = keras.dtype_policies.serialize(saved_policy(self, self.path))
        return {**config, "dtype": policy}


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
