"""What the commands share: messages, options, and checks of what is to be written."""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
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
    add(
        "--no-loops",
        action="store_true",
        help="nothing is said four times in a row, unless the text does",
    )


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
    if options.no_loops:
        settings["no_loops"] = True
    return settings


def say(message: object) -> None:
    """Writes a message of this program to standard error, if that can be written."""
    with contextlib.suppress(OSError):
        print(f"keras-vanilla: {message}", file=sys.stderr, flush=True)


def refuse_existing(path: str | Path, overwrite: bool = False) -> None:
    """Refuses a path that exists already."""
    if Path(path).exists() and not overwrite:
        raise FileExistsError(f"{path} exists already; nothing was written.")


def refuse_unwritable(path: str | Path) -> None:
    """Refuses a file that exists already, or whose folder cannot be written to."""
    refuse_existing(path)
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder to write {path} in.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path} cannot be written: its folder is read-only.")
