"""What a person reads: errors in a sentence, progress, none of TensorFlow's talk."""

import contextlib
import os
import sys
import time
import warnings
from pathlib import Path


def add_command(commands, name, run, description, needs_keras=True):
    """A new command's parser; `run` is called with its options."""
    command = commands.add_parser(name, help=description, description=description)
    command.set_defaults(run=run, needs_keras=needs_keras)
    return command


def add_search_options(command):
    """How to search, for the commands that translate."""
    add = command.add_argument
    add("--beam-size", type=int, default=1, metavar="K", help="1 is greedy search")
    add("--length-penalty", type=float, metavar="A", help="of the beams (0.6)")


def search_settings(options, scored=False):
    """What `add_search_options` was given, as `Translator.stream` takes it.

    Args:
        options: as parsed.
        scored: bool. Whether scores, which the penalty divides, are wanted anyway.
    """
    settings = {"beam_size": options.beam_size}
    if options.length_penalty is not None:
        if options.beam_size == 1 and not scored:
            raise ValueError("--length-penalty is for --beam-size above 1.")
        settings["length_penalty"] = options.length_penalty
    return settings


def say(message):
    """One line of the program's own on standard error."""
    print(f"keras-vanilla: {message}", file=sys.stderr)


def refuse_existing(path, overwrite=False):
    """Refuses to write where there is something."""
    if Path(path).exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; nothing was written.")


def refuse_unwritable(path):
    """Refuses a file that is there, or has no folder to be written in."""
    refuse_existing(path)
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"There is no folder to write {path} in.")


class Counter:
    """How many of some things are done, in a line of standard error on a terminal.

    Args:
        name: str. What is counted, such as "lines".
        total: int, or None if nobody knows.
    """

    def __init__(self, name, total=None):
        self._name, self._total = name, total
        self._count, self._since = 0, time.monotonic()

    def add(self, count):
        """Counts some more."""
        self._count += count
        if sys.stderr.isatty() and self._count:
            sys.stderr.write(f"\r{self}\x1b[K")
            sys.stderr.flush()

    def clear(self):
        """Takes the line away."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")

    def __str__(self):
        speed = self._count / max(1e-9, time.monotonic() - self._since)
        if self._total is None:
            return f"{self._count:,} {self._name}, {speed:,.1f} a second"
        left = (self._total - self._count) / speed
        return (
            f"{self._count:,} of {self._total:,} {self._name}, {speed:,.1f} a second, "
            f"{int(left // 60)}:{int(left % 60):02d} left"
        )


@contextlib.contextmanager
def quiet():
    """Keeps TensorFlow's talk out of what a person reads, and warnings to a sentence.

    Its C++ code logs to file descriptor 2 whatever its settings say, so that descriptor
    leads nowhere while Python's own standard error goes on. Who sets
    TF_CPP_MIN_LOG_LEVEL hears everything.
    """
    warnings.showwarning = lambda message, *_: say(message)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    sys.stderr.flush()
    everything, original = os.dup(2), sys.stderr
    try:
        with (
            open(os.devnull, "wb") as nowhere,
            open(os.dup(everything), "w", 1, encoding="utf-8") as sys.stderr,
        ):
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        sys.stderr = original
        os.dup2(everything, 2)
        os.close(everything)


def sentence(error):
    """An error in one sentence."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    return str(error)
