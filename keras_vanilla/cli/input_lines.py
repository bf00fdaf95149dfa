"""Reads the lines to translate, from files at once, from pipes as they arrive."""

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
    """Reads lines of a file or of standard input, grouped for translation.

    Args:
        path: path of UTF-8 text; None and "-" are standard input.
        most: int. Maximum number of lines per group from a pipe or a terminal.
        at_once: bool. Whether to wait for all lines of a pipe or a terminal too.
    Returns:
        A list of one group, if all lines are read at once. For a pipe or a terminal, an
        iterator of groups, which waits only for the first line of each group.
    Raises:
        OSError: if it cannot be read.
        ValueError: if a line is not UTF-8. An iterator raises it at that line.
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
    """Groups the items of an iterable as they arrive.

    Args:
        items: iterable, which is read in a separate thread.
        most: int. Maximum number of items per group.
        seconds: float. Time to wait for further items after the first of a group.
    Yields:
        Lists of at least one item.
    Raises:
        Exception: that of the iterable, after the items before the error.
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
    """Marks the end of the items."""

    error: Exception | None


def _read(items, arrived):
    """Puts every item into the queue, and then the end."""
    try:
        for item in items:
            arrived.put(item)
    except Exception as error:  # raised again in the consumer
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
    """Opens standard input as a separate stream.

    Python closes `sys.stdin` at exit, and aborts if a thread is still waiting for it.
    """
    raw = open(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    raw.name = STANDARD_INPUT  # for errors
    return io.BufferedReader(raw)
