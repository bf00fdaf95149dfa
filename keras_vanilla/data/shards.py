"""Parallel text in many files: file i of the source beside file i of the target."""

import os
from collections.abc import Iterable
from pathlib import Path

from keras_vanilla._checks import some_of

Paths = str | os.PathLike | Iterable[str | os.PathLike]


def paired_paths(source: Paths, target: Paths) -> list[tuple[str, str]]:
    """The paths of each source file and its translation.

    Args:
        source: path, or several.
        target: path, or as many.
    Raises:
        ValueError: if there are none, not as many of both, or both are the same file.
    """
    sources, targets = paths_of(source), paths_of(target)
    if not sources or len(sources) != len(targets):
        raise ValueError(
            "Every file of source text needs one of its translation. "
            f"Received: {len(sources)} source and {len(targets)} target files"
        )
    pairs = list(zip(sources, targets, strict=True))
    for pair in pairs:
        refuse_copies(*pair, _are_one_file(*pair))
    return pairs


def refuse_copies(source: object, target: object, are_one: bool) -> None:
    """Refuses a text that is given as its own translation.

    Args:
        source: what to call the text.
        target: what to call its translation.
        are_one: bool. Whether they are the same text.
    Raises:
        ValueError: if they are.
    """
    if are_one:
        raise ValueError(
            f"{source} and {target} must be a text and its translation. Received: the "
            "same text twice, of which a model only learns to copy"
        )


def paths_of(files: Paths) -> list[str]:
    """The paths of one file, or of several."""
    several = isinstance(files, Iterable) and not isinstance(files, (str, bytes))
    return [os.fspath(Path(file)) for file in (files if several else [files])]


def names_of(paths: Iterable[tuple[str, str]]) -> str:
    """What to call the text of these files in a message."""
    return " and ".join(some_of(side, 3) for side in zip(*paths, strict=True))


def check_line_counts(
    source: object, target: object, source_lines: int, target_lines: int
) -> None:
    """Refuses two files that cannot be each other's translation line by line."""
    if source_lines != target_lines:
        raise ValueError(
            f"{source} and {target}: {source_lines} source lines, {target_lines} "
            "target lines."
        )


def _are_one_file(source, target):
    try:
        return os.path.samefile(source, target)
    except OSError:  # reading them says what is wrong
        return source == target
