"""Reads the lines to translate, from files at once, from pipes as they arrive."""

import os
import stat
import sys
from collections.abc import Iterator

from keras_vanilla._atomic_write import named_errors

STANDARD_INPUT = "standard input"
BLOCK = 1 << 16  # bytes, as many as a pipe holds


def input_groups(
    path: str | None, most: int, at_once: bool = False
) -> list[list[str]] | Iterator[list[str]]:
    """Reads lines of a file or of standard input, grouped for translation.

    Args:
        path: path of UTF-8 text; None and "-" are standard input.
        most: int. Maximum number of lines per group from a pipe or a terminal.
        at_once: bool. Whether to wait for all lines of a pipe or a terminal too.
    Returns:
        A list of one group, if all lines are read at once. For a pipe or a terminal, an
        iterator of groups: the lines that have arrived.
    Raises:
        OSError: if it cannot be read.
        ValueError: if a line is not UTF-8. An iterator raises it at that line.
    """
    if path in (None, "-"):
        path, file = STANDARD_INPUT, sys.stdin.fileno()
        if os.name != "nt" and not os.get_blocking(file):  # as some callers leave it
            os.set_blocking(file, True)
        if os.isatty(file):
            print(f"Reading sentences from {path}, one per line.", file=sys.stderr)
    else:
        file = path
    if at_once or stat.S_ISREG(os.stat(file).st_mode):
        return [list(_lines(path if file == path else sys.stdin.buffer, path))]
    return _arriving_groups(file, path, most)


def _lines(file, name):
    """Yields the lines of a path or a stream."""
    from keras_vanilla.data.lines import lines_of

    with named_errors(name):
        for line in lines_of(file):
            yield line.decode("utf-8")


def _arriving_groups(file, name, most):
    with open(file, "rb", buffering=0, closefd=file == name) as raw:
        pipe, group = _Pipe(raw, name), []
        try:
            for line in _lines(pipe, name):
                group.append(line)
                if not pipe.waiting or len(group) == most:
                    yield group
                    group = []
        except (OSError, ValueError):
            if group:
                yield group
            raise


class _Pipe:
    """The lines of a raw stream; `waiting` counts those that have arrived."""

    def __init__(self, raw, name):
        self.read, self.name, self.waiting = raw.read, name, 0

    def __iter__(self):
        rest = b""
        while block := self.read(BLOCK):
            *lines, rest = (rest + block).split(b"\n")
            for self.waiting, line in zip(
                reversed(range(len(lines))), lines, strict=True
            ):
                yield line + b"\n"
        if rest:
            yield rest
