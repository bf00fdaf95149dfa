"""`keras-vanilla quickstart`."""

import argparse

from keras_vanilla._atomic_write import refuse_existing
from keras_vanilla.cli.console import add_command


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands, "quickstart", run, "train, test and export a small translator"
    )
    command.add_argument(
        "--output",
        default="keras-vanilla-quickstart",
        metavar="DIR",
        help="a new folder (%(default)s)",
    )


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla import quickstart

    refuse_existing(options.output)
    quickstart.run(options.output)
