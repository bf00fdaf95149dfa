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
        ValueError: if there are none, or not as many of both.
    """
    sources, targets = _paths(source), _paths(target)
    if not sources or len(sources) != len(targets):
        raise ValueError(
            "Every file of source text needs one of its translation. "
            f"Received: {len(sources)} source and {len(targets)} target files"
        )
    return list(zip(sources, targets, strict=True))


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


def _paths(files):
    several = isinstance(files, Iterable) and not isinstance(files, (str, bytes))
    return [os.fspath(Path(file)) for file in (files if several else [files])]
