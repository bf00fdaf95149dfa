"""Classes that saved files hold, imported when Keras loads one of them."""

import importlib
from typing import Any

import keras

# Each class, and the module that registers it. The layers' are always imported.
HOMES = {
    "CharacterTokenizer": "translation.saved_classes",
    "Cooldown": "training.schedule",
    "Ensemble": "models.ensemble",
    "MarianTokenizer": "translation.saved_classes",
    "Perplexity": "training.metrics",
    "RDropCrossentropy": "training.loss",
    "SmoothedCrossentropy": "training.loss",
    "TokenAccuracy": "training.metrics",
    "TokenCrossentropy": "training.metrics",
    "Tokenizer": "translation.saved_classes",
    "Transformer": "models.transformer",
    "TransformerSchedule": "training.schedule",
    "Translator": "translation.translator",
    "WordLevelCrossentropy": "training.word_level",
    "WordTokenizer": "translation.saved_classes",
}


class LazyClass:
    """What Keras finds under a class's name until the class's module is imported.

    Keras loads a saved object by `from_config` of what is registered under its name.
    Here that imports the module, which registers the class in this one's place.

    Args:
        name: str. One of `HOMES`.
    """

    def __init__(self, name: str):
        self.__name__, self.__module__ = name, f"keras_vanilla.{HOMES[name]}"

    def from_config(self, config: dict) -> Any:
        """The object that the class makes of its configuration."""
        return self.imported().from_config(config)

    def __call__(self, *args, **kwargs) -> Any:
        return self.imported()(*args, **kwargs)

    def imported(self) -> type:
        """The class."""
        return getattr(importlib.import_module(self.__module__), self.__name__)


def register_lazily() -> None:
    """Registers with Keras each class of `HOMES` that is not registered yet."""
    for name in HOMES:
        if keras.saving.get_registered_object(f"keras_vanilla>{name}") is None:
            register = keras.saving.register_keras_serializable("keras_vanilla", name)
            register(LazyClass(name))


def registered(name: str) -> Any:
    """The class or function that is registered with Keras under a name, or None.

    While Keras loads a file, it finds what was registered when it began.

    Args:
        name: str, such as "keras_vanilla>Transformer".
    """
    found = keras.saving.get_registered_object(name)
    return found.imported() if isinstance(found, LazyClass) else found
