"""`keras-vanilla translate --output-dir`: many files on one or several machines."""

import argparse
import glob
from pathlib import Path

from keras_vanilla._progress import Progress
from keras_vanilla.cli.console import (
    given_options,
    line_search_settings,
    named_options,
    say,
)

ENGINES = "local", "ray"
PROBLEMS = 3  # exit status if lines have no translation, or one without an end
FILE_OPTIONS = ["engine", "workers", "threads", "keep_going"]
LINE_OPTIONS = [
    "output",
    "n_best",
    "target_prefix",
    "terms",
    "copy",
    "no_repeat_ngram_size",
    "alignments",
    "json",
]


def add_file_options(command: argparse.ArgumentParser) -> None:
    """Adds the options for translating files."""
    add = command.add_argument
    add(
        "--output-dir",
        metavar="FOLDER",
        help="for the translations of all files of --input, such as 'part-*.txt', "
        "under their names; a run that was killed continues",
    )
    add("--engine", choices=ENGINES, help="with --output-dir: this process, or Ray")
    add("--workers", type=int, metavar="N", help="of Ray; one per machine by default")
    add("--threads", type=int, metavar="N", help="with --output-dir: per worker")
    add(
        "--keep-going",
        action="store_true",
        help="with --output-dir: exit with 0, not "
        f"{PROBLEMS}, although lines have problems",
    )


def translates_files(options: argparse.Namespace) -> bool:
    """Returns True if the options are for translating files.

    Raises:
        ValueError: if options for lines and for files are combined.
    """
    of_files = given_options(options, FILE_OPTIONS)
    if options.output_dir is None:
        if of_files:
            raise ValueError(f"{named_options(of_files)} is for --output-dir.")
        return False
    others = given_options(options, LINE_OPTIONS)
    others += ["on_too_long"] if options.on_too_long != "refuse" else []
    if others or options.text:
        received = named_options(others) or "a text"
        raise ValueError(f"--output-dir is only for files. Received: {received}")
    return True


def translate_files(options: argparse.Namespace) -> int:
    """Translates files into a folder; returns the exit status."""
    if options.input in (None, "-"):
        raise ValueError("--output-dir needs --input, such as --input 'part-*.txt'.")
    sources = [path for path in glob.glob(options.input) if Path(path).is_file()]
    if not sources:
        raise FileNotFoundError(f"There is no file {options.input}.")
    settings = line_search_settings(options)
    for name in ("max_length", "threads"):
        if getattr(options, name) is not None:
            settings[name] = getattr(options, name)

    from keras_vanilla.bulk import translate_shards

    with Progress("Translating", None, "lines") as progress:
        lines, problems = translate_shards(
            options.model,
            sources,
            options.output_dir,
            engine=options.engine or ENGINES[0],
            workers=options.workers,
            progress=progress,
            **settings,
        )
    say(f"{lines:,} lines of {len(sources):,} files are in {options.output_dir}.")
    if problems:
        path = Path(options.output_dir, "problems.tsv")
        say(f"Lines with problems: {problems:,}. They are named in {path}.")
    return PROBLEMS if problems and not options.keep_going else 0
