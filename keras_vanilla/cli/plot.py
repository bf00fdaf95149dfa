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
    _add_attention(pictures)
    _add_picture(pictures, "positions", _positions, "the positional encoding of a text")
    training = add_command(
        pictures,
        "training",
        _training,
        "loss, accuracy and BLEU by epoch, from the history.csv beside the model",
    )
    training.add_argument("model", metavar="MODEL", help="a .keras file, or its folder")
    _add_output(training)


def _add_attention(pictures):
    add = _add_picture(
        pictures, "attention", _attention, "the attention weights of a translation"
    ).add_argument
    add(
        "--kind",
        default="cross",
        choices=["cross", "encoder", "decoder"],
        help="translation to source (the default), or either to itself",
    )
    add(
        "--layer",
        type=int,
        metavar="L",
        help="number of the layer, from 1 (default: the last)",
    )
    add(
        "--head",
        type=int,
        metavar="N",
        help="number of the head, from 1 (default: the mean)",
    )


def _add_picture(pictures, name, draw, description):
    picture = add_command(pictures, name, draw, description)
    picture.add_argument("model", type=model_path, metavar="MODEL", help=KERAS_MODEL)
    picture.add_argument("text", metavar="TEXT", help="a sentence to translate")
    _add_output(picture)
    return picture


def _add_output(picture):
    picture.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="a .png, .svg or .pdf file that does not exist yet",
    )


def _attention(options):
    from keras_vanilla.plots.translation import translation_attention

    _draw_text(
        options,
        translation_attention,
        kind=options.kind,
        layer=options.layer,
        head=options.head,
    )


def _positions(options):
    from keras_vanilla.plots.translation import translation_positions

    _draw_text(options, translation_positions)


def _training(options):
    from keras_vanilla.plots import training_history

    _check_output(options.output)
    model = Path(options.model)
    if not model.exists():
        raise FileNotFoundError(f"There is no file {model}.")
    folder = model if model.is_dir() else model.parent
    if not (folder / "history.csv").is_file():
        raise FileNotFoundError(
            f"There is no history.csv in {folder}: `keras-vanilla train` writes one."
        )
    _write(training_history(folder / "history.csv"), options.output)


def _draw_text(options, draw, **settings):
    _check_output(options.output)
    from keras_vanilla.translation.translator import Translator

    translator = Translator.load(options.model)
    _write(draw(translator, options.text, **settings), options.output)


def _write(figure, path):
    from keras_vanilla._atomic_write import atomic_write
    from keras_vanilla.plots.style import style

    kind = Path(path).suffix.lower()[1:]
    with style(), atomic_write(path, parents=True) as file:
        figure.savefig(file, format=kind, bbox_inches="tight")  # nothing is cut off


def _check_output(path):
    """Checks the output path before the model is read."""
    from keras_vanilla.plots.style import style

    with style():  # raises if matplotlib is not installed
        refuse_unwritable(path)
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(
            f"The name of a picture must end with .png, .svg or .pdf. Received: {path}"
        )
