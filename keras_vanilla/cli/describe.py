"""`keras-vanilla describe`."""

import argparse
import dataclasses
from functools import partial
from pathlib import Path

from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla.cli.console import (
    PRETRAINED,
    add_command,
    add_json_option,
    json_text,
    model_name,
    model_path,
)


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands,
        "describe",
        run,
        "print the description inside a .tflite file",
        needs_keras=False,
    )
    command.add_argument(
        "file",
        type=partial(model_path, suffix=".tflite"),
        metavar="FILE.tflite",
        help=f"an exported file, or {PRETRAINED}",
    )
    add_json_option(command, "one JSON object")


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla.export.metadata.flatbuffer import (
        CHECKSUM,
        read_description,
        read_metadata,
        sha256_of,
    )

    if is_hub_reference(options.file):
        raise ValueError(
            "describe reads .tflite files, and a model on the hub must be exported "
            f"first: keras-vanilla export {options.file} translator.tflite"
        )
    description = read_description(options.file)
    digest = sha256_of(options.file)
    if options.json:
        print(json_text({**dataclasses.asdict(description), "sha256": digest}))
    else:
        size = Path(options.file).stat().st_size
        has_checksum = read_metadata(options.file, CHECKSUM) is not None
        known = "as its checksum says" if has_checksum else "no checksum"
        print(f"{model_name(options.file)}: {size:,} bytes, {known}")
        print(f"SHA-256 {digest}\n")
        print(description)
