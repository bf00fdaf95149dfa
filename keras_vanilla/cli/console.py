"""What a person reads: errors in a sentence, progress, none of TensorFlow's talk."""

import contextlib
import os
import sys
import time
import warnings
from pathlib import Path


def add_command(commands, name, run, description):
    """A new command's parser; `run` is called with its options."""
    command = commands.add_parser(name, help=description, description=description)
    command.set_defaults(run=run)
    return command


def add_search_options(command):
    """How to search, for the commands that translate."""
    add = command.add_argument
    add("--beam-size", type=int, default=1, metavar="K", help="1 is greedy search")
    add("--length-penalty", type=float, default=0.6, metavar="A", help="%(default)s")


def say(message):
    """One line of the program's own on standard error."""
    print(f"keras-vanilla: {message}", file=sys.stderr)


def refuse_existing(path, overwrite=False):
    """Refuses to write where there is something."""
    if Path(path).exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; nothing was written.")


def progress(items, total):
    """The items as they come, counted in a line of standard error on a terminal."""
    since = drawn = time.monotonic()
    shown = False
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if sys.stderr.isatty() and now - drawn > 0.5:
            drawn, shown = now, True
            left = (total - done) * (now - since) / done
            sys.stderr.write(
                f"\r{done:,} of {total:,} lines, {done / (now - since):,.0f} a second,"
                f" {int(left // 60)}:{int(left % 60):02d} left\x1b[K"
            )
            sys.stderr.flush()
    if shown:
        sys.stderr.write("\r\x1b[K")


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
