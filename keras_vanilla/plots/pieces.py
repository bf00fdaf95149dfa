"""The ids of a text and of its translation, and the names of their pieces."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from keras_vanilla.translation.encoded_texts import check_length

if TYPE_CHECKING:
    from keras_vanilla.tokenizer import Tokenizer
    from keras_vanilla.translation.translator import Translator
START, END, PAD = "<s>", "</s>", "<pad>"


def source_of(translator: "Translator", text: str) -> list[int]:
    """Source ids of a text, a list of int.

    Raises:
        ValueError: if it has no piece or more pieces than the model takes.
    """
    ids = translator.encode([text])[0]
    if len(ids) == 1:  # the end
        raise ValueError(f"The text must have at least one piece. Received: {text!r}")
    return ids


def target_of(translator: "Translator", translation: str) -> list[int]:
    """Target ids of a given translation, a list of int, the end last.

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


def source_names(tokenizer: "Tokenizer") -> Callable[[int], str]:
    """A function from a source id to the piece's name."""
    return _names(tokenizer, tokenizer.source_pieces)


def target_names(tokenizer: "Tokenizer") -> Callable[[int], str]:
    """A function from a target id to the piece's name."""
    return _names(tokenizer, tokenizer.target_pieces)


def _names(tokenizer, pieces_of):
    # A tokenizer may have special ids that its SentencePiece model does not know.
    special = {
        tokenizer.pad_id: PAD,
        tokenizer.start_id: START,
        tokenizer.end_id: END,
    }

    def name(id_):
        try:
            return special.get(id_) or pieces_of([int(id_)])[0]
        except IndexError:
            return f"<{id_}>"  # an id without a piece

    return name
