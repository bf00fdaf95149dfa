"""`keras-vanilla plot`."""

import argparse
from pathlib import Path

from keras_vanilla._atomic_write import refuse_unwritable
from keras_vanilla.cli.console import (
    KERAS_MODEL,
    add_command,
    model_path,
)


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command and its pictures."""
    description = "draw attention, positions or a training"
    pictures = add_command(commands, "plot", None, description).add_subparsers(
        title="pictures", required=True, metavar="PICTURE"
    )
    for name, draw, shows in (
        ("attention", _attention, "the attention weights of a translation"),
        ("positions", _positions, "the positional encoding of a text"),
        ("training", _training, "the history.csv that is beside a model, by epoch"),
    ):
        picture = add_command(pictures, name, _drawn, shows)
        picture.set_defaults(draw=draw)
        add = picture.add_argument
        if name == "training":
            add("model", metavar="MODEL", help="a .keras file, or its folder")
        else:
            add("model", type=model_path, metavar="MODEL", help=KERAS_MODEL)
            add("text", metavar="TEXT", help="a sentence to translate")
        add(
            "-o",
            "--output",
            required=True,
            metavar="FILE",
            help="a .png, .svg or .pdf file that does not exist yet",
        )
        if name == "attention":
            add(
                "--kind",
                default="cross",
                choices=["cross", "encoder", "decoder"],
                help="translation to source (the default), or either to itself",
            )
            number = "number of the {}, from 1 (default: {})"
            add(
                "--layer",
                type=int,
                metavar="L",
                help=number.format("layer", "the last"),
            )
            add("--head", type=int, metavar="N", help=number.format("head", "the mean"))


def _drawn(options):
    """Draws a picture; its file is checked before the model is read."""
    from keras_vanilla._atomic_write import atomic_write
    from keras_vanilla.plots.style import style

    path, kind = options.output, Path(options.output).suffix.lower()
    with style():  # raises if matplotlib is not installed
        refuse_unwritable(path)
        if kind not in (".png", ".svg", ".pdf"):
            raise ValueError(
                "The name of a picture must end with .png, .svg or .pdf. "
                f"Received: {path}"
            )
        figure = options.draw(options)
        with atomic_write(path, parents=True) as file:
            figure.savefig(file, format=kind[1:], bbox_inches="tight")  # nothing is cut


def _attention(options):
    from keras_vanilla.plots.translation import translation_attention
    from keras_vanilla.translation.translator import Translator

    choice = {name: getattr(options, name) for name in ("kind", "layer", "head")}
    translator = Translator.load(options.model)
    return translation_attention(translator, options.text, **choice)


def _positions(options):
    from keras_vanilla.plots.translation import translation_positions
    from keras_vanilla.translation.translator import Translator

    return translation_positions(Translator.load(options.model), options.text)


def _training(options):
    from keras_vanilla.plots import training_history

    model = Path(options.model)
    path = (model if model.is_dir() else model.parent) / "history.csv"
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no {path}: `keras-vanilla train` writes one beside its models."
        )
    return training_history(path)
