"""Prepares standard input, output and error for the program."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from keras_vanilla._atomic_write import named_errors
from keras_vanilla.cli.console import say

LOG_FILTER = Path(__file__).with_name("log_filter.py")


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
    """Hides the messages of TensorFlow's C++ code, and shortens warnings to one line.

    Some of this code logs to file descriptor 2 regardless of TF_CPP_MIN_LOG_LEVEL. The
    descriptor is therefore replaced by a pipe to `log_filter.py`, and Python's standard
    error becomes a copy of the original. TF_CPP_MIN_LOG_LEVEL=0 shows all messages. (A
    value of 1 may not come from the user, because `import jax` sets it.)
    """
    original = sys.stderr, warnings.showwarning
    warnings.showwarning = lambda message, *_: say(message)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    copy = os.dup(2)
    try:
        sys.stderr = open(os.dup(copy), "w", 1, "utf-8", "backslashreplace")
        with _filtered(copy) if _hides_messages() else contextlib.nullcontext():
            yield
    finally:
        with contextlib.suppress(OSError):  # messages may not be writable
            sys.stderr.close()
        sys.stderr, warnings.showwarning = original
        os.close(copy)


def _hides_messages():
    return os.environ.get("TF_CPP_MIN_LOG_LEVEL") != "0"


def hide_messages() -> None:
    """Hides the messages of TensorFlow's C++ code from now on, as `quiet` does.

    Python's standard error is not changed, because in a notebook it has no descriptor.
    """
    if _hides_messages():
        _start_filter(os.dup(2))


@contextlib.contextmanager
def _filtered(original):
    """Makes file descriptor 2 a pipe to the log filter, which writes to `original`."""
    process = _start_filter(original)
    try:
        yield
    finally:
        os.dup2(original, 2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)  # it waits for the pipe, which a child may keep open


def _start_filter(original):
    """Makes file descriptor 2 a pipe to the log filter; returns its process."""
    process = subprocess.Popen(
        # Isolated and without site packages, it starts in a few milliseconds.
        [sys.executable, "-I", "-S", LOG_FILTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=original,
        start_new_session=True,  # so that Ctrl-C does not end it too early
    )
    with process.stdin as pipe:
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
