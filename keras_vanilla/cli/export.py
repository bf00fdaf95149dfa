"""`keras-vanilla export` and `keras-vanilla verify`."""

import argparse
from pathlib import Path

from keras_vanilla._atomic_write import refuse_unwritable
from keras_vanilla.cli.console import (
    KERAS_MODEL,
    about_settings,
    add_about_options,
    add_command,
    add_json_option,
    add_search_options,
    example_of,
    json_text,
    model_name,
    model_path,
    say,
)
from keras_vanilla.export.metadata.description import FORMS

SETTINGS = (
    "quantize",
    "form",
    "beam_size",
    "length_penalty",
    "no_loops",
    "max_bytes",
    "max_source_length",
    "max_length",
    "outputs",
    "check",
)


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the commands."""
    _add_export(commands)
    _add_verify(commands)


def _add_export(commands):
    command = add_command(
        commands, "export", _export, "write a .tflite file, a site or a SavedModel"
    )
    command.add_argument("model", type=model_path, metavar="MODEL", help=KERAS_MODEL)
    command.add_argument(
        "output",
        metavar="FILE.tflite|FOLDER",
        help="the file or folder to write; must not exist",
    )
    group = command.add_argument_group("of a .tflite file or a site")
    add = group.add_argument
    add(
        "--quantize",
        choices=["int8", "int4", "none"],
        help="precision of the weights (default: int8)",
    )
    add(
        "--form",
        choices=[*FORMS, "site"],
        help="what goes in and out (default: text), or a web site",
    )
    add_search_options(group, for_files=True)
    add("--max-bytes", type=int, help="longest text in bytes of UTF-8 (default: 512)")
    for name, side in (("--max-source-length", "source"), ("--max-length", "output")):
        add(name, type=int, help=f"longest {side} in tokens (default: 128)")
    add(
        "--outputs",
        nargs="+",
        choices=["alignment", "confidence"],
        help="additional outputs for each token",
    )
    add("--sample", metavar="FILE", help="sentences to check the file with")
    add(
        "--check",
        choices=["all", "structure"],
        help="checks of the file (default: all); untrained models pass only structure",
    )
    add_about_options(command)
    command.add_argument_group("of a site").add_argument(
        "--runtime",
        metavar="FOLDER",
        help="where npm has installed @litertjs/core; otherwise it is fetched, once",
    )
    command.add_argument_group("of a SavedModel").add_argument(
        "--core-operators",
        action="store_true",
        default=None,
        help="use only TensorFlow's own operators: no tensorflow-text and no XLA "
        "(default: where tensorflow-text is not installed)",
    )


def _add_verify(commands):
    command = add_command(
        commands, "verify", _verify, "compare an exported file with its model"
    )
    command.add_argument("model", type=model_path, metavar="MODEL", help=KERAS_MODEL)
    command.add_argument(
        "exported",
        metavar="FILE.tflite|FOLDER",
        help="the exported file; a folder's graph is run, so it must be trustworthy",
    )
    command.add_argument(
        "--source", required=True, metavar="FILE", help="sentences to compare on"
    )
    command.add_argument(
        "--reference", metavar="FILE", help="their translations, for BLEU and chrF"
    )
    add_json_option(command, "the report as one JSON object")


def _export(options):
    from keras_vanilla.data.corpus import read_lines
    from keras_vanilla.export import ExportConfig
    from keras_vanilla.translation.translator import Translator

    refuse_unwritable(options.output)
    settings = _settings(options)
    write = _writer(options, settings)
    config = ExportConfig.of(**settings)
    sample = options.sample and read_lines(options.sample)
    write(Translator.load(options.model), options, config, sample)


def _settings(options):
    """Converts the options to fields of `ExportConfig`."""
    settings = {name: getattr(options, name) for name in SETTINGS}
    settings = {name: value for name, value in settings.items() if value is not None}
    settings |= about_settings(options)
    if settings.get("quantize") == "none":
        settings["quantize"] = None
    if "length_penalty" in settings and settings.get("beam_size", 1) == 1:
        raise ValueError("--length-penalty is for --beam-size above 1.")
    return settings


def _writer(options, settings):
    """Returns a function that writes the output: a file, a site or a SavedModel."""
    to_file = options.output.endswith(".tflite")
    to_site = options.form == "site"
    if to_file and to_site:
        raise ValueError(f"A site is a folder. Received: {options.output}")
    of_a_file = settings or options.sample is not None
    if not to_file and not to_site and (of_a_file or Path(options.output).suffix):
        raise ValueError(
            "A file's name ends with .tflite; a SavedModel is a folder, whose name has "
            "no ending, and takes no option but --core-operators; a site is a folder "
            f"with --form site. Received: {options.output}"
        )
    if options.core_operators and (to_file or to_site):
        raise ValueError("--core-operators is for a SavedModel, a folder.")
    if options.runtime and not to_site:
        raise ValueError("--runtime is for --form site.")
    if to_site:
        del settings["form"]
        return _write_site
    return _write_file if to_file else _write_saved_model


def _write_file(translator, options, config, sample):
    from keras_vanilla import export
    from keras_vanilla.export.metadata.flatbuffer import sha256_of

    export.tflite(translator, options.output, config, sample=sample, say=say)
    print(f"SHA-256 of {options.output}: {sha256_of(options.output)}")
    if config.form == "text":
        about = translator.about.updated(config.about)
        _say_what_comes_next(options, about, Path(options.output).with_suffix(".md"))
    else:
        _say_what_comes_next(options, None)


def _write_saved_model(translator, options, config, sample):
    from keras_vanilla import export

    export.saved_model(translator, options.output, options.core_operators)
    _say_what_comes_next(options, translator.about)


def _write_site(translator, options, config, sample):
    from keras_vanilla.web.site import write_site

    settings = {"config": config, "sample": sample}
    write_site(translator, options.output, options.runtime, say, **settings)
    print(f"{options.output} is written: the files of a web site. To see it:")
    print(f"  keras-vanilla serve-web {options.output}")


def _say_what_comes_next(options, about, card=None):
    """Prints the next commands; `about` is None for a file that does not take text."""
    beside = f", and its model card, {card}" if card else ""
    print(f"{options.output} is written{beside}.\n\nNext:")
    if about is not None:
        print(f"  keras-vanilla translate {options.output} {example_of(about)}")
    model = model_name(options.model)
    print(f"  keras-vanilla verify {model} {options.output} --source FILE")


def _verify(options):
    from keras_vanilla import export
    from keras_vanilla.data.corpus import read_lines
    from keras_vanilla.data.lines import refuse_copies
    from keras_vanilla.translation.translator import Translator

    lines = read_lines(options.source)
    references = options.reference and read_lines(options.reference)
    refuse_copies(options.source, options.reference, lines == references)
    translator = Translator.load(options.model)
    report = export.verify(translator, options.exported, lines, references)
    print(json_text(report.to_dict()) if options.json else report)
    if not report.passed:
        raise ValueError(_verdict(report, options))


def _verdict(report, options):
    """Returns why a file is not as it should be, and what to do."""
    if report.faults:
        faults = " ".join(report.faults)
        return f"{options.exported} has faults: {faults} Export it again."
    if report.reasons == report.model_faults:
        return (
            f"{options.exported} translates as {options.model} does, but that does not "
            f"translate these sentences: {' '.join(report.reasons)} Train the model "
            "longer, or verify with sentences like those it was trained on."
        )
    again = "If the model was trained since the export, export it again."
    if report.quantized:
        again += " For a file that is not rounded: export --quantize none."
        if not report.metrics:
            again += " Verify with --reference, which counts BLEU."
    return f"{options.exported} translates differently from {options.model}. {again}"
