"""The ids of a text and of its translation."""

from typing import TYPE_CHECKING

from keras_vanilla.translation.encoded_texts import check_length

if TYPE_CHECKING:
    from keras_vanilla.translation.translator import Translator


def source_of(translator: "Translator", text: str) -> list[int]:
    """Returns the source ids of a text, a list of int.

    Raises:
        ValueError: if it has no piece or more pieces than the model takes.
    """
    ids = translator.encode([text])[0]
    if len(ids) == 1:  # the end
        raise ValueError(f"The text must have at least one piece. Received: {text!r}")
    return ids


def target_of(translator: "Translator", translation: str) -> list[int]:
    """Returns the target ids of a given translation, a list of int with the end.

    Raises:
        ValueError: if it has no piece or more pieces than the model takes.
    """
    ids = translator.tokenizer.encode_target([translation])[0]
    if len(ids) == 1:  # the end
        raise ValueError(
            f"The translation must have at least one piece. Received: {translation!r}"
        )
    longest = translator.model.max_length
    check_length("Translation", 1, len(ids), longest, translation)
    return ids
