"""Combines several translators with the same tokenizer into one."""

from collections.abc import Sequence

from keras_vanilla.models import Ensemble
from keras_vanilla.translation.translator import Translator


def ensemble(translators: Sequence[Translator]) -> Translator:
    """Creates a translator that averages the probabilities of several models.

    It can translate, be scored, saved and exported as a SavedModel like any other. A
    `.tflite` file holds only one model; for that, train a student of the ensemble, as
    `keras-vanilla distil` does.

    Args:
        translators: list of Translator, of any sizes, with the same tokenizer; for
            example trained with different seeds.
    Raises:
        ValueError: if the list is empty, the tokenizers differ, or `Ensemble` refuses
            the models.
    Example:
        both = ensemble([Translator.load("a.keras"), Translator.load("b.keras")])
        both.save("both.keras")
    """
    if not translators:
        raise ValueError("An ensemble must have at least one translator. Received: []")
    first = translators[0]
    for number, other in enumerate(translators, start=1):
        if other.tokenizer.digest != first.tokenizer.digest:
            raise ValueError(
                "The translators of an ensemble must have one tokenizer. Received: "
                f"translator {number} with another tokenizer than translator 1"
            )
    return first.replace(model=Ensemble([each.model for each in translators]))


def check_one_model(translator: Translator, what: str) -> None:
    """Refuses an ensemble in formats that hold only one Transformer.

    Args:
        translator: Translator.
        what: str. The format, such as "A .tflite file", for the error.
    Raises:
        ValueError: if the translator has several models.
    """
    if isinstance(translator.model, Ensemble):
        raise ValueError(
            f"{what} holds one Transformer: train a student of the ensemble, as "
            "`keras-vanilla distil` does. Received: an ensemble of "
            f"{len(translator.model.models)}"
        )
