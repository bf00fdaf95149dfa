"""The vocabularies of CTranslate2's model folders: files of tokens, by their ids."""

import json
from collections.abc import Sequence
from pathlib import Path

from keras_vanilla.interop.files.json_file import read_json


def read_vocabularies(folder: Path, unknown: str) -> tuple[list[list[str]], list[str]]:
    """The tokens of a model folder by their ids.

    Args:
        folder: path.
        unknown: str. The token of unknown words; where a file lacks it, its id is the
            first one after the file's, as in CTranslate2.
    Returns:
        The vocabularies of the source, one for each feature of a word, and that of the
        target. Both are the same list if the model shares it.
    Raises:
        OSError: if one is missing or cannot be read.
        ValueError: if one is not a list of tokens.
    """
    shared = _vocabulary(folder, "shared_vocabulary", unknown)
    if shared is not None:
        return [shared], shared
    target = _vocabulary(folder, "target_vocabulary", unknown)
    sources = [_vocabulary(folder, "source_vocabulary", unknown)]
    if sources == [None]:
        sources = []
        for i in range(1, 100):
            tokens = _vocabulary(folder, f"source_{i}_vocabulary", unknown)
            if tokens is None:
                break
            sources.append(tokens)
    if target is None or not sources:
        name = "source" if target is not None else "target"
        raise FileNotFoundError(
            f"{folder} has neither shared_vocabulary.json nor {name}_vocabulary.json, "
            "and neither as .txt."
        )
    return sources, target


def vocabulary_texts(
    sources: Sequence[Sequence[str]], target: Sequence[str]
) -> dict[str, str]:
    """The files of vocabularies, name -> content; one file if all are equal.

    Args:
        sources: the vocabularies of the source, one for each feature of a word.
        target: that of the target.
    """
    vocabularies = {"shared": target}
    if any(list(tokens) != list(target) for tokens in sources):
        numbered = len(sources) > 1
        vocabularies = {
            f"source_{i}" if numbered else "source": tokens
            for i, tokens in enumerate(sources, 1)
        } | {"target": target}
    return {
        f"{name}_vocabulary.json": json.dumps(list(tokens), indent=2)
        for name, tokens in vocabularies.items()
    }


def _vocabulary(folder, name, unknown):
    """The tokens by id, or None if there is no such file."""
    path = folder / f"{name}.json"
    if path.exists():
        tokens = read_json(path)
        if not isinstance(tokens, list) or any(type(t) is not str for t in tokens):
            raise ValueError(f"{path} is not a list of tokens.")
    elif (path := folder / f"{name}.txt").exists():
        tokens = _lines(path)
    else:
        return None
    return tokens if unknown in tokens else [*tokens, unknown]


def _lines(path):
    """The lines of a file; tokens may end with a carriage return, unless all do."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}.") from error
    lines = text.removesuffix("\n").split("\n") if text else []
    if all(line.endswith("\r") for line in lines):
        lines = [line.removesuffix("\r") for line in lines]
    return lines
