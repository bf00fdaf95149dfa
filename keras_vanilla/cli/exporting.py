"""`keras-vanilla export` and `keras-vanilla verify`."""

from pathlib import Path

from keras_vanilla.cli.console import add_command, refuse_existing


def add_to(commands):
    """Adds the commands."""
    _add_export(commands)
    _add_verify(commands)


def _add_export(commands):
    command = add_command(
        commands, "export", _export, "write a .tflite file or a SavedModel folder"
    )
    command.add_argument("model", metavar="MODEL", help="a .keras file")
    command.add_argument(
        "output", metavar="FILE.tflite|FOLDER", help="must not exist yet"
    )
    command.add_argument(
        "--quantize", choices=["int8", "none"], help="of a .tflite file (int8)"
    )
    for name, what in (("--max-source-length", "source"), ("--max-length", "output")):
        command.add_argument(
            name, type=int, help=f"longest {what} of a .tflite file, in tokens (128)"
        )


def _add_verify(commands):
    command = add_command(
        commands, "verify", _verify, "compare an exported file with its model"
    )
    command.add_argument("model", metavar="MODEL", help="a .keras file")
    command.add_argument("exported", metavar="FILE.tflite|FOLDER")
    command.add_argument(
        "--source", required=True, metavar="FILE", help="sentences to compare on"
    )


def _export(options):
    from keras_vanilla import export
    from keras_vanilla.translator import Translator

    refuse_existing(options.output)
    settings = {
        "quantize": options.quantize,
        "max_source_length": options.max_source_length,
        "max_length": options.max_length,
    }
    settings = {name: value for name, value in settings.items() if value is not None}
    if settings.get("quantize") == "none":
        settings["quantize"] = None
    to_file = options.output.endswith(".tflite")
    if not to_file and (settings or Path(options.output).suffix):
        raise ValueError(
            "A file's name ends with .tflite; a SavedModel is a folder, whose name has "
            f"no ending, and takes no options. Received: {options.output}"
        )
    translator = Translator.load(options.model)
    if to_file:
        export.tflite(translator, options.output, **settings)
    else:
        export.saved_model(translator, options.output)
    print(f"{options.output} is written. To compare it with {options.model}:")
    print(f"  keras-vanilla verify {options.model} {options.output} --source FILE")


def _verify(options):
    from keras_vanilla import export
    from keras_vanilla.text.corpus import read_lines
    from keras_vanilla.translator import Translator

    lines = read_lines(options.source)
    report = export.verify(Translator.load(options.model), options.exported, lines)
    print(report)
    if not report.passed:
        raise ValueError(f"{options.exported} does not say what {options.model} says.")
