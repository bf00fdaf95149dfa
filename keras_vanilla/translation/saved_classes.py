"""The classes that a saved translator names, found again by Keras's registry."""

import keras

from keras_vanilla._lazy_classes import registered
from keras_vanilla.models.registry import REGISTER, registered_name
from keras_vanilla.tokenizer import (
    CharacterTokenizer,
    MarianTokenizer,
    Tokenizer,
    WordTokenizer,
)

# Of files that name no class.
TRANSFORMER, TOKENIZER = "keras_vanilla>Transformer", "keras_vanilla>Tokenizer"

for _class in (CharacterTokenizer, MarianTokenizer, Tokenizer, WordTokenizer):
    # Here, because `tokenizer` opens without Keras.
    keras.saving.register_keras_serializable("keras_vanilla")(_class)


def class_name(part: object) -> str:
    """The name by which Keras finds the class of an object again.

    Args:
        part: a translator, its model or its tokenizer.
    Raises:
        ValueError: if its class is not registered with Keras.
    """
    cls = type(part)
    name = registered_name(cls)
    if name is None:
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
    cls = registered(name)
    if cls is None:
        raise ValueError(
            f"The class {name!r} is not registered with Keras: import the module that "
            f"defines it with {REGISTER} before loading."
        )
    return cls


def tokenizer_config(tokenizer: object) -> dict:
    """What a translator's configuration says of its tokenizer.

    SentencePiece's models are files of the archive; any other tokenizer is a Keras
    object with a configuration of its own.

    Raises:
        ValueError: if its class is not registered with Keras, or has no `from_config`.
    """
    name = class_name(tokenizer)
    if isinstance(tokenizer, Tokenizer):
        return {"tokenizer_class": name, "special_ids": tokenizer.get_config()}
    if not hasattr(tokenizer, "from_config"):
        raise ValueError(
            f"{type(tokenizer).__name__} cannot be saved: it has no `from_config`. "
            "Give it `get_config` and `from_config`, as a Keras layer has them."
        )
    return {"tokenizer": keras.saving.serialize_keras_object(tokenizer)}
