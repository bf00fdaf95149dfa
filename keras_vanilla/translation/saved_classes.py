"""The classes that a saved translator names, found again by Keras's registry."""

import keras

REGISTER = "@keras.saving.register_keras_serializable()"
TRANSFORMER = "keras_vanilla>Transformer"  # of files that name no class


def class_name(part: object) -> str:
    """The name by which Keras finds the class of an object again.

    Args:
        part: a translator, its model or its tokenizer.
    Raises:
        ValueError: if its class is not registered with Keras.
    """
    cls = type(part)
    name = keras.saving.get_registered_name(cls)
    if keras.saving.get_registered_object(name) is not cls:
        raise ValueError(
            f"{cls.__name__} cannot be saved: a file of it could not be loaded again. "
            f"Register the class with Keras: put {REGISTER} above it."
        )
    return name


def class_named(name: str) -> type:
    """The class that was saved under a name.

    Args:
        name: str, of `class_name`.
    Raises:
        ValueError: if no class of that name is registered.
    """
    cls = keras.saving.get_registered_object(name)
    if cls is None:
        raise ValueError(
            f"The class {name!r} is not registered with Keras: import the module that "
            f"defines it with {REGISTER} before loading."
        )
    return cls
