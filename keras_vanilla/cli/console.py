"""The terminal: options of several commands, messages, errors in one sentence."""

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path


def add_command(
    commands: argparse._SubParsersAction,
    name: str,
    run: Callable[[argparse.Namespace], None] | None,
    description: str,
    needs_keras: bool = True,
) -> argparse.ArgumentParser:
    """Adds a command and returns its parser; `run` is called with its options."""
    command = commands.add_parser(name, help=description, description=description)
    command.set_defaults(run=run, needs_keras=needs_keras)
    return command


def add_search_options(command: argparse.ArgumentParser) -> None:
    """Adds the options of the search, for the commands that translate."""
    add = command.add_argument
    add("--beam-size", type=int, default=1, metavar="K", help="1 is greedy search")
    add("--length-penalty", type=float, metavar="A", help="of the beams (0.6)")


def search_settings(options: argparse.Namespace, scored: bool = False) -> dict:
    """The values of `add_search_options`, as arguments of `Translator.stream`.

    Args:
        options: as parsed.
        scored: bool. Whether scores, which the penalty divides, are printed.
    """
    settings = {"beam_size": options.beam_size}
    if options.length_penalty is not None:
        if options.beam_size == 1 and not scored:
            raise ValueError("--length-penalty is for --beam-size above 1.")
        settings["length_penalty"] = options.length_penalty
    return settings


def say(message: object) -> None:
    """Writes a message of this program to standard error."""
    print(f"keras-vanilla: {message}", file=sys.stderr)


def refuse_existing(path: str | Path, overwrite: bool = False) -> None:
    """Refuses a path that exists already."""
    if Path(path).exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; nothing was written.")


def refuse_unwritable(path: str | Path) -> None:
    """Refuses a file that exists already, or whose folder does not exist."""
    refuse_existing(path)
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"There is no folder to write {path} in.")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hides the messages of TensorFlow's C++ code, and shortens warnings to a line.

    That code logs to file descriptor 2 whatever its settings are, so that descriptor is
    redirected to nowhere, and Python's standard error to a copy of it. Where
    TF_CPP_MIN_LOG_LEVEL is set nothing is hidden.
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


def sentence(error: Exception) -> str:
    """The sentence that describes an error."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    return str(error)
