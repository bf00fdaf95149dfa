"""The vocabularies of Marian's own models: files of tokens, by their ids."""

from collections.abc import Sequence
from pathlib import Path

from keras_vanilla.interop.files.flat_yaml import parse_flat_yaml
from keras_vanilla.interop.files.json_file import read_json_object
from keras_vanilla.interop.marian_tokenizer import PAD, read_model, tokens_by_id
from keras_vanilla.interop.vocabularies import filled_up


def read_vocabulary(path: Path) -> list[str]:
    """The tokens of a vocabulary in the order of their ids.

    Args:
        path: path of a file, whose suffix says what it is, as for Marian: ".yml" or
            ".yaml" of tokens and ids, ".json" of the same, ".spm" for a SentencePiece
            model and its pieces; any other has a token per line.
    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not what its suffix says, or the ids are not 0, 1, 2, ...
    """
    if path.suffix == ".spm":
        return [piece.piece for piece in read_model(path).pieces]
    if path.suffix == ".json":
        return tokens_by_id(path, read_json_object(path))
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}.") from None
    if path.suffix in (".yml", ".yaml"):
        return tokens_by_id(path, _whole_numbers(parse_flat_yaml(text, path)))
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if len(set(lines)) < len(lines):
        raise ValueError(f"{path} must have each token once.")
    return tokens_by_id(path, {token: id_ for id_, token in enumerate(lines)})


def with_pad(vocabularies: Sequence[Sequence[str]]) -> list[list[str]]:
    """The vocabularies of source and target with a pad of one id, which Marian lacks.

    Tokens without a meaning fill the smaller vocabulary up.

    Args:
        vocabularies: two lists of tokens.
    """
    size = max(map(len, vocabularies))
    return [
        list(tokens) if PAD in tokens else [*filled_up(tokens, size), PAD]
        for tokens in vocabularies
    ]


def _whole_numbers(ids):
    """Digits as ints; anything else as it is, for the error that names it."""
    return {
        token: int(id_) if isinstance(id_, str) and id_.isdecimal() else id_
        for token, id_ in ids.items()
    }
