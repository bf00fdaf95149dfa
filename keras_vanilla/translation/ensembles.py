"""Several translators with one tokenizer, as one translator."""

from collections.abc import Sequence

from keras_vanilla.models import Ensemble
from keras_vanilla.translation.saved_classes import tokenizer_config
from keras_vanilla.translation.translator import Translator


def ensemble(translators: Sequence[Translator]) -> Translator:
    """One translator that searches with the mean of the models' probabilities.

    It is translated with, scored, saved and exported as a SavedModel as any other. A
    `.tflite` file holds one model: train a student of the ensemble, as
    `keras-vanilla distil` does.

    Args:
        translators: list of Translator, of any sizes, with the same tokenizer: trained
            with other seeds, for example.
    Raises:
        ValueError: if there are none, their tokenizers differ, or their models do in
            what an `Ensemble` must have in common.
    Example:
        both = ensemble([Translator.load("a.keras"), Translator.load("b.keras")])
        both.save("both.keras")
    """
    if not translators:
        raise ValueError("An ensemble must have at least one translator. Received: []")
    first = translators[0]
    for number, other in enumerate(translators, start=1):
        if _identity(other.tokenizer) != _identity(first.tokenizer):
            raise ValueError(
                "The translators of an ensemble must have one tokenizer. Received: "
                f"translator {number} with another tokenizer than translator 1"
            )
    return first.replace(model=Ensemble([each.model for each in translators]))


def check_one_model(translator: Translator, what: str) -> None:
    """Refuses an ensemble where one Transformer is written.

    Args:
        translator: Translator.
        what: str. What is written, such as "A .tflite file".
    Raises:
        ValueError: if the translator has several models.
    """
    if isinstance(translator.model, Ensemble):
        raise ValueError(
            f"{what} holds one Transformer: train a student of the ensemble, as "
            "`keras-vanilla distil` does. Received: an ensemble of "
            f"{len(translator.model.models)}"
        )


def _identity(tokenizer):
    """What two tokenizers have in common if they give the same ids."""
    return getattr(tokenizer, "digest", None) or tokenizer_config(tokenizer)
