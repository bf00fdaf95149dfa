"""Names under which Keras finds saved classes and functions."""

import inspect
from collections.abc import Callable
from typing import Any

import keras

from keras_vanilla._lazy_classes import registered

REGISTER = "@keras.saving.register_keras_serializable()"


def registered_name(thing: Any) -> str | None:
    """The registered name of a class or function; None if it is not registered."""
    name = keras.saving.get_registered_name(thing)
    return name if registered(name) is thing else None


def layer_maker(argument: str, maker: Callable | str | None) -> Callable | None:
    """Finds the class or function that creates layers from its name in a config.

    Args:
        argument: str. The argument's name, for errors.
        maker: class or function, or its registered name; None is returned as None.
    Raises:
        ValueError: if `maker` is none of these, or is not registered with Keras.
    """
    if isinstance(maker, str):
        registered_maker = registered(maker)
        if registered_maker is None:
            raise ValueError(
                f"`{argument}` is not registered with Keras: import the module that "
                f"defines it. Received: {maker!r}"
            )
        return registered_maker
    if not (maker is None or inspect.isclass(maker) or inspect.isroutine(maker)):
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
