"""`keras-vanilla distil`: a student learns from the translations of its teacher."""

import argparse
from pathlib import Path

from keras_vanilla._progress import Progress
from keras_vanilla.cli import train
from keras_vanilla.cli.console import add_command, say
from keras_vanilla.cli.corpora import add_validation_options

BEAM_SIZE = 5


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands, "distil", run, "train a student on its teacher's translations"
    )
    add = command.add_argument
    add(
        "teacher",
        metavar="TEACHER",
        help="a .keras or .tflite file, a SavedModel, or CTranslate2's folder",
    )
    add(
        "--source",
        nargs="+",
        required=True,
        metavar="FILE",
        help="what the teacher translates: one sentence per line, or .gz, .xz, .zst",
    )
    add(
        "--translations",
        metavar="DIR",
        help="for the teacher's translations (the output, and -translations)",
    )
    add(
        "--beam-size",
        type=int,
        metavar="K",
        help=f"the teacher's ({BEAM_SIZE}); a .tflite file and a SavedModel have one",
    )
    add_validation_options(command)
    train.add_training_options(command)
    command.set_defaults(corpus=None, reverse=False, cache=None)


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    folder = Path(options.translations or f"{options.output}-translations")
    options.target = [str(folder / Path(source).name) for source in options.source]
    training = train.checked(options)
    with training[-1]:
        pass  # a folder that would be refused is, before anything is translated
    _translate(options, folder)
    train.start(training, options)


def _translate(options, folder):
    from keras_vanilla.bulk import translate_shards

    beam_size = options.beam_size
    if beam_size is None and _takes_a_beam_size(Path(options.teacher)):
        beam_size = BEAM_SIZE
    settings = {} if beam_size is None else {"beam_size": beam_size}
    with Progress("Translating", None, "lines") as progress:
        lines, problems = translate_shards(
            options.teacher, options.source, folder, progress=progress, **settings
        )
    say(f"{lines:,} lines of the teacher are in {folder}, {problems:,} with a problem.")


def _takes_a_beam_size(teacher):
    return teacher.suffix != ".tflite" and not (teacher / "saved_model.pb").exists()
