"""Finds the classes of a saved translator in Keras's registry."""

import keras

from keras_vanilla._lazy_classes import registered
from keras_vanilla.models.registry import REGISTER, registered_name
from keras_vanilla.tokenizer import (
    CharacterTokenizer,
    MarianTokenizer,
    Tokenizer,
    WordTokenizer,
)

# Used for files that do not name their classes.
TRANSFORMER, TOKENIZER = "keras_vanilla>Transformer", "keras_vanilla>Tokenizer"

for _class in (CharacterTokenizer, MarianTokenizer, Tokenizer, WordTokenizer):
    # Registered here, because `tokenizer` does not import Keras.
    keras.saving.register_keras_serializable("keras_vanilla")(_class)


def class_name(part: object) -> str:
    """The name under which Keras finds the class of an object.

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
    """The class with a saved name.

    Args:
        name: str, from `class_name`.
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
    """The entries for the tokenizer in a translator's configuration.

    SentencePiece models are separate files in the archive; other tokenizers are Keras
    objects with a configuration.

    Raises:
        ValueError: if the class is not registered with Keras, or has no `from_config`.
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
