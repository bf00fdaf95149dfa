"""Classes and functions by the names under which Keras finds them again."""

from collections.abc import Callable
from typing import Any

import keras

from keras_vanilla._lazy_classes import registered

REGISTER = "@keras.saving.register_keras_serializable()"


def registered_name(thing: Any) -> str | None:
    """The name under which Keras finds a class or function; None if it does not."""
    name = keras.saving.get_registered_name(thing)
    return name if registered(name) is thing else None


def layer_maker(argument: str, maker: Callable | str | None) -> Callable | None:
    """The class or function that makes layers, which a config names.

    Args:
        argument: str. The argument's name, for errors.
        maker: class or function, or its registered name; None stays None.
    Raises:
        ValueError: if it is neither, or not registered with Keras.
    """
    if isinstance(maker, str):
        found = registered(maker)
        if found is None:
            raise ValueError(
                f"`{argument}` is registered nowhere: import the module that defines "
                f"it. Received: {maker!r}"
            )
        return found
    if isinstance(maker, keras.layers.Layer) or not (maker is None or callable(maker)):
        raise ValueError(
            f"`{argument}` must be a class or function that makes a layer. "
            f"Received: {maker!r}"
        )
    if maker is not None and registered_name(maker) is None:
        raise ValueError(
            f"`{argument}` could not be loaded again: decorate {maker.__qualname__} "
            f"with {REGISTER}."
        )
    return maker
