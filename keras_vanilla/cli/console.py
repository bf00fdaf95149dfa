"""Messages, options and checks of outputs that the commands share."""

import argparse
import contextlib
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla.pretrained import NAMES, model_not_found, pretrained_file

if TYPE_CHECKING:
    from keras_vanilla._about import About


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


HUB = "hub:OWNER/NAME[@REVISION]"
PRETRAINED = f"the name of a pretrained model ({', '.join(NAMES)})"
KERAS_MODEL = f"a .keras file, {PRETRAINED}, or {HUB}"
ANY_MODEL = f"a .keras or .tflite file, a SavedModel, {PRETRAINED}, or {HUB}"

MODELS = "model", "exported", "start", "teacher"  # arguments with a model


def model_path(model: str, suffix: str = ".keras") -> str:
    """Converts an argument that names a model to its path.

    Args:
        model: a path, a reference to the hub, or the name of a pretrained model. A
            file or folder with such a name takes precedence.
        suffix: ".keras" or ".tflite", which file of a pretrained model is used.
    """
    is_name = model in NAMES and not Path(model).exists()
    return str(pretrained_file(model, suffix)) if is_name else model


def refuse_missing_models(options: argparse.Namespace) -> None:
    """Refuses a model that does not exist, before Keras is imported for seconds.

    Args:
        options: the parsed arguments of any command.
    Raises:
        FileNotFoundError: if an argument in `MODELS` names no file or folder.
    """
    for model in filter(None, (vars(options).get(name) for name in MODELS)):
        if not is_hub_reference(model) and not Path(model).exists():
            raise model_not_found(model)


def model_name(path: str) -> str:
    """Returns what a command takes for a path from `model_path`, for messages."""
    folder = Path(path).parent
    return folder.name if folder in {pretrained_file(n).parent for n in NAMES} else path


def is_keras_file(model: str) -> bool:
    """Returns True if a model is read as a `Translator`.

    This is a file other than `.tflite`, or a model on the hub.
    """
    path = Path(model)
    return is_hub_reference(model) or not (path.suffix == ".tflite" or path.is_dir())


def add_json_option(command: argparse.ArgumentParser, what: str) -> None:
    """Adds `--json`, with the same meaning for all commands.

    Args:
        command: the parser to add it to.
        what: str. The output, such as "one JSON object".
    """
    command.add_argument(
        "--json", action="store_true", help=f"print {what} to standard output"
    )


def json_text(value: object, indent: int | None = 2) -> str:
    """Formats a value as JSON; numbers that JSON lacks, such as NaN, become null."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=indent)


def given_options(options: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Returns the names of options that were given, which are not None or False."""
    values = ((name, getattr(options, name)) for name in names)
    return [name for name, value in values if value is not None and value is not False]


def named_options(names: Sequence[str]) -> str:
    """Formats names of options as they are typed, for messages."""
    return ", ".join("--" + name.replace("_", "-") for name in names)


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    is_number = not isinstance(value, float) or math.isfinite(value)
    return value if is_number else None


def add_search_options(
    command: argparse._ActionsContainer, for_files: bool = False
) -> None:
    """Adds the options of the search to a command, or to a group of its options.

    Args:
        command: the command or group.
        for_files: bool. Only options that exported files can have.
    """
    add = command.add_argument
    beams = "number of beams; 1, the default, is greedy search"
    add("--beam-size", type=int, metavar="K", help=beams)
    penalty = "length penalty of beam search (default: 0.6)"
    add("--length-penalty", type=float, metavar="A", help=penalty)
    if not for_files:
        add(
            "--length-normalization",
            choices=["gnmt", "power"],
            help="what is raised to the length penalty: (5 + n) / 6 (gnmt, the "
            "default), or n, the number of tokens (power)",
        )
    add(
        "--no-loops",
        action="store_true",
        default=None,
        help="repeat no phrase more than three times, unless the source repeats it",
    )


def search_settings(
    options: argparse.Namespace, *more: str, scored: bool = False
) -> dict:
    """Converts given search options to arguments of a translator.

    Args:
        options: the parsed options of `add_search_options`.
        *more: names of further options that are arguments of the translator.
        scored: bool. Whether scores, which the penalty normalises, are printed.
    """
    names = ("length_penalty", "length_normalization")
    if options.beam_size in (None, 1) and not scored:
        for name in given_options(options, names):
            raise ValueError(f"{named_options([name])} is for --beam-size above 1.")
    names = given_options(options, ("beam_size", *names, "no_loops", *more))
    return {name: getattr(options, name) for name in names}


ABOUT = {
    "name": "the model's name",
    "source_language": 'such as "de"',
    "target_language": 'such as "en" or "pt-BR"; of several, the one in the file',
    "model_license": "the model's license",
    "data": "what it was trained on",
    "data_license": "the data's license",
}


def add_about_options(command: argparse.ArgumentParser) -> None:
    """Adds the options that describe a translator, for commands that write one."""
    add = command.add_argument_group("description of the translator").add_argument
    for name, description in ABOUT.items():
        add(f"--{name.replace('_', '-')}", metavar="TEXT", help=description)
    add(
        "--example",
        dest="examples",
        action="append",
        metavar="TEXT",
        help="an example sentence of the source language; may be repeated",
    )
    add("--no-examples", action="store_true", help="store no example sentences")


def about_settings(options: argparse.Namespace) -> dict:
    """Converts the given values of `add_about_options` to arguments of `About`."""
    if options.no_examples and options.examples:
        raise ValueError("Give --example or --no-examples, not both.")
    settings = {name: getattr(options, name) for name in (*ABOUT, "examples")}
    if options.no_examples:
        settings["examples"] = []
    return {name: value for name, value in settings.items() if value is not None}


def example_of(about: "About") -> str:
    """Returns an example text for a hint, quoted for a shell."""
    example = about.examples[0] if about.examples else "..."
    # `shlex.quote` writes an apostrophe as '"'"'.
    return quoted(example) if set(example) & set('"$`\\!') else f'"{example}"'


def quoted(word: str) -> str:
    """Returns a word for a hint, quoted for a POSIX shell, or on Windows for cmd."""
    if os.name == "nt":
        return '"' + word.replace('"', '""') + '"'
    return shlex.quote(word)


def say(message: object) -> None:
    """Writes a message of this program to standard error, if possible."""
    with contextlib.suppress(OSError):
        print(f"keras-vanilla: {message}", file=sys.stderr, flush=True)
