"""`keras-vanilla convert`."""

import argparse

from keras_vanilla._atomic_write import refuse_unwritable
from keras_vanilla.cli.console import (
    KERAS_MODEL,
    about_settings,
    add_about_options,
    add_command,
    example_of,
    model_path,
    named_options,
)

FORMATS = ("keras", "ctranslate2", "marian")


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands, "convert", run, "turn models of other formats into .keras, or back"
    )
    add = command.add_argument
    add(
        "model",
        type=model_path,
        metavar="FROM",
        help=f"{KERAS_MODEL}, an .argosmodel file, or the folder of a model of Hugging "
        "Face's (OPUS-MT) or of CTranslate2",
    )
    add("output", metavar="TO", help="the file or folder to write; must not exist")
    add("--format", choices=FORMATS, help="of TO, unless it ends with .keras")
    add(
        "--quantize",
        choices=["int8", "float16"],
        help="round the weights, for a smaller file (default: no); .keras: only int8",
    )
    add_about_options(command)


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla._about import About
    from keras_vanilla.interop import read_translator, write_translator

    refuse_unwritable(options.output)
    if options.format is None and not options.output.endswith(".keras"):
        is_export = options.output.endswith(".tflite")
        hint = "; `keras-vanilla export` writes .tflite files" if is_export else ""
        raise ValueError(
            f"{options.output} does not end with .keras: give its --format, one of "
            f"{', '.join(FORMATS)}{hint}."
        )
    settings = {}
    if options.quantize is not None:
        if options.format == "marian":
            raise ValueError("--quantize is for .keras files and --format ctranslate2.")
        settings["quantize"] = options.quantize
    about = About(**about_settings(options))
    if about != About() and not options.output.endswith(".keras"):
        raise ValueError(
            f"{named_options(about.stated())}: only a .keras file keeps it. Received: "
            f"{options.output}"
        )
    translator = read_translator(options.model)
    translator = translator.replace(about=translator.about.updated(about))
    write_translator(translator, options.output, options.format, **settings)
    model = translator.model
    print(
        f"{options.output} is written: {model.num_encoder_layers} + "
        f"{model.num_decoder_layers} layers, width {model.d_model}, "
        f"{model.source_vocabulary_size:,} and {model.target_vocabulary_size:,} ids, "
        f"{model.count_params():,} parameters."
    )
    if options.output.endswith(".keras"):
        example = example_of(translator.about)
        print(f"  keras-vanilla translate {options.output} {example}")
        print(f"  keras-vanilla export {options.output} translator.tflite")
