"""The lines to translate: a file's at once, a pipe's or a terminal's as they come."""

import io
import os
import queue
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from threading import Thread
from typing import NamedTuple

from keras_vanilla._atomic_write import named_errors

STANDARD_INPUT = "standard input"
SECONDS_TO_GATHER = 0.1  # after the first line of a group


def input_groups(
    path: str | None, most: int, at_once: bool = False
) -> list[list[str]] | Iterator[list[str]]:
    """The lines of a file, or of standard input, in groups to translate together.

    Args:
        path: path of UTF-8 text; None and "-" are standard input.
        most: int. Lines per group at most, of a pipe or a terminal.
        at_once: bool. Waits for all lines of a pipe or a terminal too.
    Returns:
        A list of one group, if all lines are read at once. Of a pipe or a terminal an
        iterator of groups, which waits for the first line of each group only.
    Raises:
        OSError: if it cannot be read.
        ValueError: if a line is not UTF-8; of an iterator, when that line comes.
    """
    path = None if path == "-" else path
    if path is None and sys.stdin.isatty():
        print("Reading sentences from standard input, one per line.", file=sys.stderr)
    mode = os.stat(sys.stdin.fileno() if path is None else path).st_mode
    if at_once or stat.S_ISREG(mode):
        return [list(_lines(path))]
    return as_they_come(_lines(path), most)


def as_they_come(
    items: Iterable, most: int, seconds: float = SECONDS_TO_GATHER
) -> Iterator[list]:
    """Groups of what an iterable gives while it is waited for.

    Args:
        items: iterable, which a thread of its own reads.
        most: int. Items per group at most.
        seconds: float. How long a group is gathered after its first item.
    Yields:
        Lists of at least one item.
    Raises:
        Exception: as the iterable, after the items before the error.
    """
    arrived = queue.Queue(most)
    Thread(target=_read, args=(items, arrived), daemon=True).start()
    end = None
    while end is None:
        group = [arrived.get()]
        stop = time.monotonic() + seconds
        while len(group) < most and not isinstance(group[-1], _End):
            try:
                group.append(arrived.get(timeout=max(0, stop - time.monotonic())))
            except queue.Empty:
                break
        if isinstance(group[-1], _End):
            end = group.pop()
        if group:
            yield group
    if end.error:
        raise end.error


class _End(NamedTuple):
    """What follows the last item."""

    error: Exception | None


def _read(items, arrived):
    """Puts every item into the queue, then the end."""
    try:
        for item in items:
            arrived.put(item)
    except Exception as error:  # it is raised where the items are used
        arrived.put(_End(error))
    else:
        arrived.put(_End(None))


def _lines(path):
    """Yields the lines of a path or, without one, of standard input."""
    from keras_vanilla.data.lines import lines_of

    with named_errors(path or STANDARD_INPUT):
        for line in lines_of(path or _standard_input()):
            yield line.decode("utf-8")


def _standard_input():
    """Standard input as a stream of its own.

    Python closes `sys.stdin` at exit, and aborts if a thread still waits for it.
    """
    raw = open(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    raw.name = STANDARD_INPUT  # for errors
    return io.BufferedReader(raw)
