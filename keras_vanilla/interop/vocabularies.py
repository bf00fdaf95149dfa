"""The vocabularies of our tokenizers as lists of tokens, for formats that keep them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.tokenizer.special_ids import load_model
from keras_vanilla.tokenizer.tokenizer import require_sentencepiece

START, END, PAD, UNKNOWN = "<s>", "</s>", "<pad>", "<unk>"


def vocabularies(tokenizer: Tokenizer, what: str) -> list[list[str]]:
    """The tokens of source and target by their ids, each once.

    Args:
        tokenizer: Tokenizer.
        what: str. What needs them, for errors.
    Raises:
        ValueError: if two ids have the same token, the tokenizer is not SentencePiece's
            or puts a language's code before each text.
    """
    require_sentencepiece(what, tokenizer)
    if getattr(tokenizer, "target_language", None) is not None:
        raise ValueError(
            f"{what} takes the code of a language from each text; use the tokenizer "
            "`with_target_language(None)`. Received: a tokenizer with "
            f"target_language={tokenizer.target_language!r}"
        )
    special = {
        tokenizer.start_id: START,
        tokenizer.pad_id: PAD,  # also where a target starts with it
        tokenizer.unknown_id: UNKNOWN,
        tokenizer.end_id: END,
    }
    sides = [
        _tokens(tokenizer.source_model, tokenizer.vocabulary_size, special),
        _tokens(tokenizer.target_model, tokenizer.target_vocabulary_size, special),
    ]
    check_tokens("The tokenizer", sides)
    return sides


def filled_up(tokens: Sequence[str], size: int) -> list[str]:
    """The tokens, followed by ones without a meaning if there are fewer than `size`."""
    return [*tokens, *(f"<unused_{id_}>" for id_ in range(len(tokens), size))]


def check_tokens(where: object, sides: Sequence[Sequence[str]]) -> None:
    """Refuses vocabularies of which one has a token twice, or one without text.

    Args:
        where: what errors call their place.
        sides: the vocabularies.
    Raises:
        ValueError: if one has.
    """
    for tokens in sides:
        token, count = Counter(tokens).most_common(1)[0]
        if count > 1 or "" in tokens:
            raise ValueError(
                f"{where} must have each token once, and none without text. Received: "
                f"{token if count > 1 else ''!r}"
            )


def _tokens(model: bytes, size: int, special: Mapping[int, str]) -> list[str]:
    processor = load_model(model, "the model")
    ids = list(range(min(size, processor.get_piece_size())))
    tokens = filled_up(processor.id_to_piece(ids), size)
    return [special.get(id_, token) for id_, token in enumerate(tokens)]
