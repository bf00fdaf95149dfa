"""Imports the classes in saved files when Keras loads them."""

import importlib
from typing import Any, NoReturn

import keras

# Each class, and the module that registers it. Layers are always imported.
HOMES = {
    "CharacterTokenizer": "translation.saved_classes",
    "Cooldown": "training.schedule",
    "MarianTokenizer": "translation.saved_classes",
    "Perplexity": "training.metrics",
    "SmoothedCrossentropy": "training.loss",
    "TokenAccuracy": "training.metrics",
    "TokenCrossentropy": "training.metrics",
    "Tokenizer": "translation.saved_classes",
    "Transformer": "models.transformer",
    "TransformerSchedule": "training.schedule",
    "Translator": "translation.translator",
    "WordTokenizer": "translation.saved_classes",
}
# Classes that were removed: modules and classes that load what was saved of them.
REMOVED = {
    "RDropCrossentropy": ("training.loss", "FormerLoss"),
    "WordLevelCrossentropy": ("training.loss", "FormerLoss"),
}
REFUSED = ("Ensemble",)  # removed as well; keras_vanilla 0.7.0 reads their files


class RefusedClass:
    """Registered with Keras in place of a class whose files are refused.

    Args:
        name: str. One of `REFUSED`.
    """

    def __init__(self, name: str):
        self.__name__ = self.__qualname__ = name

    def from_config(self, config: dict) -> NoReturn:
        """Refuses a saved object of the class.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"{self.__name__} was removed in 0.8.0; keras_vanilla 0.7.0 reads the file"
        )


class LazyClass:
    """A placeholder that is registered with Keras until a class is imported.

    Keras loads a saved object with `from_config` of the registered class. Here, this
    method imports the module, which registers the class in place of the placeholder.

    Args:
        name: str. One of `HOMES` or `REMOVED`.
    """

    def __init__(self, name: str):
        home, self._class_name = REMOVED.get(name) or (HOMES[name], name)
        self.__name__, self.__module__ = name, f"keras_vanilla.{home}"

    def from_config(self, config: dict) -> Any:
        """Creates an object of the class from its configuration."""
        return self.imported().from_config(config)

    def __call__(self, *args, **kwargs) -> Any:
        return self.imported()(*args, **kwargs)

    def imported(self) -> type:
        """Imports and returns the class."""
        return getattr(importlib.import_module(self.__module__), self._class_name)


def register_lazily() -> None:
    """Registers each class of the tables, unless it is already registered."""
    for name in HOMES | REMOVED:
        if keras.saving.get_registered_object(f"keras_vanilla>{name}") is None:
            register = keras.saving.register_keras_serializable("keras_vanilla", name)
            register(LazyClass(name))
    for name in REFUSED:
        keras.saving.register_keras_serializable("keras_vanilla", name)(
            RefusedClass(name)
        )


def registered(name: str) -> Any:
    """Returns the class or function registered with Keras under a name, or None.

    While Keras loads a file, it uses the classes registered at the start of loading.

    Args:
        name: str, such as "keras_vanilla>Transformer".
    """
    value = keras.saving.get_registered_object(name)
    return value.imported() if isinstance(value, LazyClass) else value
