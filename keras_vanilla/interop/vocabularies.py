"""The vocabularies of our tokenizers as lists of tokens, for other formats."""

from collections import Counter
from collections.abc import Mapping, Sequence

from keras_vanilla.tokenizer import MarianTokenizer, Tokenizer
from keras_vanilla.tokenizer.special_ids import load_model
from keras_vanilla.tokenizer.tokenizer import require_sentencepiece

START, END, PAD, UNKNOWN = "<s>", "</s>", "<pad>", "<unk>"


def vocabularies(tokenizer: Tokenizer, what: str) -> list[list[str]]:
    """Returns the unique tokens of source and target, by id.

    Args:
        tokenizer: Tokenizer.
        what: str. The feature that needs them, for errors.
    Raises:
        ValueError: if two ids have the same token, or the tokenizer is not
            SentencePiece's or adds a language code to each text.
    """
    require_sentencepiece(what, tokenizer)
    if isinstance(tokenizer, MarianTokenizer) and tokenizer.target_language is not None:
        raise ValueError(
            f"{what} takes the code of a language from each text; use the tokenizer "
            "`with_target_language(None)`. Received: a tokenizer with "
            f"target_language={tokenizer.target_language!r}"
        )
    special = {
        tokenizer.start_id: START,
        tokenizer.pad_id: PAD,  # also if targets start with it
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
    """Fills up the tokens to `size` with unused ones."""
    return [*tokens, *(f"<unused_{id_}>" for id_ in range(len(tokens), size))]


def check_tokens(where: object, sides: Sequence[Sequence[str]]) -> None:
    """Refuses vocabularies with duplicate or empty tokens.

    Args:
        where: the location of the vocabularies, for errors.
        sides: the vocabularies.
    Raises:
        ValueError: if there is such a token.
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
