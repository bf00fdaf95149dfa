"""`keras-vanilla convert`."""

import argparse

from keras_vanilla.cli.console import add_command, refuse_existing

FORMATS = ("keras", "marian", "ctranslate2")


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands,
        "convert",
        _convert,
        "turn a trained model of another format into a .keras file, or back",
    )
    command.add_argument(
        "model",
        metavar="FROM",
        help="a .keras file, an .argosmodel file, or the folder of a model of Hugging "
        "Face's (OPUS-MT), of Marian or of CTranslate2",
    )
    command.add_argument("output", metavar="TO", help="must not exist yet")
    command.add_argument(
        "--format", choices=FORMATS, help="of TO (.keras: keras; else it is needed)"
    )
    command.add_argument(
        "--quantize", choices=["int8", "float16"], help="of ctranslate2 (float32)"
    )


def _convert(options):
    from keras_vanilla.interop import read_translator, write_translator

    refuse_existing(options.output)
    if options.format is None and not options.output.endswith(".keras"):
        raise ValueError(
            f"{options.output} does not end with .keras: give its --format, one of "
            f"{', '.join(FORMATS)}."
        )
    settings = {}
    if options.quantize is not None:
        if options.format != "ctranslate2":
            raise ValueError("--quantize is for --format ctranslate2.")
        settings["quantize"] = options.quantize
    translator = read_translator(options.model)
    write_translator(translator, options.output, options.format, **settings)
    model = translator.model
    print(
        f"{options.output} is written: {model.num_encoder_layers} + "
        f"{model.num_decoder_layers} layers, width {model.d_model}, "
        f"{model.source_vocabulary_size:,} and {model.target_vocabulary_size:,} ids, "
        f"{model.count_params():,} parameters."
    )
    if options.output.endswith(".keras"):
        print(f'  keras-vanilla translate {options.output} "..."')
        print(f"  keras-vanilla export {options.output} translator.tflite")
