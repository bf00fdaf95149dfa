"""`keras-vanilla distil`: trains a student on the translations of its teacher."""

import argparse
from pathlib import Path

from keras_vanilla._progress import Progress
from keras_vanilla.cli import train
from keras_vanilla.cli.console import (
    ANY_MODEL,
    add_command,
    is_keras_file,
    model_path,
    say,
)
from keras_vanilla.cli.corpora import add_table_options, add_validation_options

BEAM_SIZE = 5


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands, "distil", run, "train a student on its teacher's translations"
    )
    add = command.add_argument
    add("teacher", type=model_path, metavar="TEACHER", help=ANY_MODEL)
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
    add_table_options(command)
    train.add_training_options(command)
    command.set_defaults(pairs=None, cache=None)


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    train.reuse_freed_memory()
    folder = Path(options.translations or f"{options.output}-translations")
    options.target = [str(folder / Path(source).name) for source in options.source]
    training = train.checked(options)
    with training[-1]:
        pass  # refuses an invalid folder before anything is translated
    _translate(options, folder)
    training_input = training[1]
    training_input.about = _about_teacher(options).updated(training_input.about)
    train.start(training, options)


def _about_teacher(options):
    """Returns the languages and examples of a teacher, which its student shares."""
    from keras_vanilla._about import About
    from keras_vanilla.export import read_description
    from keras_vanilla.translation import Translator

    teacher = options.teacher
    if is_keras_file(teacher):
        about = Translator.load(teacher).about
    elif Path(teacher).is_dir():
        return About()
    else:
        about = read_description(teacher)
    names = ("source_language", "target_language", "examples")
    return About(**{name: getattr(about, name, None) or None for name in names})


def _translate(options, folder):
    """Translates the files of --source into a folder with the teacher."""
    from keras_vanilla.bulk import translate_shards

    teacher, beam_size = options.teacher, options.beam_size
    path = Path(teacher)
    has_a_beam_size = path.suffix == ".tflite" or (path / "saved_model.pb").exists()
    if beam_size is None and not has_a_beam_size:
        beam_size = BEAM_SIZE
    settings = {} if beam_size is None else {"beam_size": beam_size}
    with Progress("Translating", None, "lines") as progress:
        lines, problems = translate_shards(
            teacher, options.source, folder, progress=progress, **settings
        )
    say(f"{lines:,} lines of the teacher are in {folder}, {problems:,} with a problem.")
