"""Prepares standard input, output and error for the program."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator

from keras_vanilla._atomic_write import named_errors
from keras_vanilla.cli.console import say


@contextlib.contextmanager
def usable_streams() -> Iterator[None]:
    """Ensures that standard streams exist and use UTF-8 in the block.

    A closed stream (`>&-`) is opened again, so that its number is not given to another
    file. Reading from it or writing to it fails as in other programs; only messages are
    dropped silently.
    """
    _open_closed()
    encodings = [(s, s.encoding, s.errors) for s in _text_streams()]
    for stream in _text_streams():
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        yield
    finally:
        for stream, encoding, errors in encodings:
            with contextlib.suppress(OSError):
                stream.reconfigure(encoding=encoding, errors=errors)


@contextlib.contextmanager
def flushed_results() -> Iterator[None]:
    """Flushes standard output at the end of the block, even after an error.

    Raises:
        OSError: if it cannot be written. The buffer is then dropped, so that Python
            does not try to write it at exit.
    """
    try:
        yield
    finally:
        try:
            with named_errors("standard output"):
                sys.stdout.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), sys.stdout.fileno())
            raise


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hides the messages of C++ code in the block, and shortens warnings to one line.

    Python's standard error is a copy of the original, which may be a terminal.
    """
    original, show = sys.stderr, warnings.showwarning
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.showwarning = lambda message, *_: say(message)
    sys.stderr = open(os.dup(2), "w", 1, "utf-8", "backslashreplace")
    process = hide_messages()
    try:
        yield
    finally:
        os.dup2(sys.stderr.fileno(), 2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)  # it ends with the pipe, which a child may keep open
        with contextlib.suppress(OSError):  # messages may not be writable
            sys.stderr.close()
        sys.stderr, warnings.showwarning = original, show


# TF_CPP_MIN_LOG_LEVEL hides TensorFlow's messages, but neither LiteRT's nor those that
# are written before abseil is initialised. A separate process filters these out of file
# descriptor 2, so that the last words of a program that aborts are still shown.
FILTER = r"""
import re, sys
for line in sys.stdin.buffer:
    if not re.match(rb"(INFO|WARNING): |[IWE]\d{4} [\d:.]+ +\d+ \S+:\d+\] ", line):
        sys.stderr.buffer.raw.write(line)
"""


def hide_messages() -> subprocess.Popen:
    """Hides the messages of TensorFlow's C++ code, except fatal ones, from now on.

    It must be called before TensorFlow is imported. If the user has set
    TF_CPP_MIN_LOG_LEVEL to 0, all messages are shown.
    """
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    words = [sys.executable, "-I", "-S", "-c", FILTER]  # starts in milliseconds
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # so that Ctrl-C does not end it too early
    )
    with process.stdin as pipe:
        if level != "0":
            os.dup2(pipe.fileno(), 2)
    return process


def _text_streams():
    """Returns the standard streams that are text files, unlike those of a notebook."""
    streams = sys.stdout, sys.stderr
    return [stream for stream in streams if isinstance(stream, io.TextIOWrapper)]


def _open_closed():
    """Opens closed streams, in the order of their numbers, so that using them fails."""
    ways = ("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY)
    for name, mode, access in (*ways, ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, access)
            setattr(sys, name, open(descriptor, mode, closefd=False))
