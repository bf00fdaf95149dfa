"""`keras-vanilla describe`."""

import argparse
import dataclasses
import json
from pathlib import Path

from keras_vanilla.cli.console import add_command


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands,
        "describe",
        run,
        "print the description inside a .tflite file",
        needs_keras=False,
    )
    command.add_argument("file", metavar="FILE.tflite")
    command.add_argument("--json", action="store_true", help="as one JSON object")


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla.export.metadata.description import read_description

    description = read_description(options.file)
    if options.json:
        fields = dataclasses.asdict(description)
        print(json.dumps(fields, ensure_ascii=False, indent=2))
    else:
        print(f"{options.file}: {Path(options.file).stat().st_size:,} bytes\n")
        print(description)
