"""`keras-vanilla export`, `verify` and `describe`."""

import argparse
import dataclasses
from functools import partial
from pathlib import Path

from keras_vanilla._atomic_write import refuse_unwritable
from keras_vanilla._hub_reference import is_hub_reference
from keras_vanilla.cli.console import (
    KERAS_MODEL,
    PRETRAINED,
    about_settings,
    add_about_options,
    add_command,
    add_json_option,
    add_search_options,
    example_of,
    given_options,
    json_text,
    model_name,
    model_path,
    say,
)
from keras_vanilla.export.metadata.description import FORMS
from keras_vanilla.pretrained import NAMES, pretrained_file


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the commands."""
    _add_export(commands)
    _add_verify(commands)
    _add_describe(commands)


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
    modes = ["int8", "int4", "none"]
    add("--quantize", choices=modes, help="precision of the weights (default: int8)")
    add(
        "--form",
        choices=[*FORMS, "site"],
        help="what goes in and out (default: text), or a web site",
    )
    add_search_options(group, for_files=True)
    add("--max-bytes", type=int, help="longest text in bytes of UTF-8 (default: 512)")
    for name, side in (("--max-source-length", "source"), ("--max-length", "output")):
        add(name, type=int, help=f"longest {side} in tokens (default: 128)")
    outputs = ["alignment", "confidence"]
    add("--outputs", nargs="+", choices=outputs, help="more outputs for each token")
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
    add = command.add_argument
    add("model", type=model_path, metavar="MODEL", help=KERAS_MODEL)
    add(
        "exported",
        metavar="FILE.tflite|FOLDER",
        help="the exported file; a folder's graph is run, so it must be trustworthy",
    )
    add("--source", required=True, metavar="FILE", help="sentences to compare on")
    add("--reference", metavar="FILE", help="their translations, for BLEU and chrF")
    add_json_option(command, "the report as one JSON object")


def _add_describe(commands):
    command = add_command(
        commands,
        "describe",
        _describe,
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


def _export(options):
    from keras_vanilla import export
    from keras_vanilla.data.corpus import read_lines
    from keras_vanilla.export.config import EXPORT_OPTIONS, ExportConfig
    from keras_vanilla.export.metadata.flatbuffer import sha256_of
    from keras_vanilla.translation.translator import Translator
    from keras_vanilla.web.site import write_site

    output = options.output
    refuse_unwritable(output)
    names = given_options(options, vars(options).keys() & set(EXPORT_OPTIONS))
    settings = {name: getattr(options, name) for name in names}
    settings |= about_settings(options)
    if settings.get("quantize") == "none":
        settings["quantize"] = None
    _check_output(options, settings)
    is_site = settings.get("form") == "site"
    if is_site:
        del settings["form"]
    config = ExportConfig.of(**settings)
    sample = options.sample and read_lines(options.sample)
    translator = Translator.load(options.model)
    about, beside = translator.about, ""
    if is_site:
        checks = {"config": config, "sample": sample}
        is_ours = options.model in [str(pretrained_file(name)) for name in NAMES]
        if is_ours and sample is None and not settings:
            # The installed file is smaller and better than a new one.
            checks = {"model": Path(options.model).with_suffix(".tflite")}
        write_site(translator, output, options.runtime, say, **checks)
        print(f"{output} is written: the files of a web site. To see it:")
        print(f"  keras-vanilla serve-web {output}")
        return
    if output.endswith(".tflite"):
        export.tflite(translator, output, config, sample=sample, say=say)
        print(f"SHA-256 of {output}: {sha256_of(output)}")
        about = about.updated(config.about)
        if config.form == "text":
            card = Path(output).with_suffix(".md")
            beside = f", and its model card, {card}"
    else:
        export.saved_model(translator, output, options.core_operators)
    print(f"{output} is written{beside}.\n\nNext:")
    if config.form == "text":
        print(f"  keras-vanilla translate {output} {example_of(about)}")
    print(f"  keras-vanilla verify {model_name(options.model)} {output} --source FILE")


def _check_output(options, settings):
    """Checks that the options are for the kind of output: file, site or SavedModel."""
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
    if "length_penalty" in settings and settings.get("beam_size", 1) == 1:
        raise ValueError("--length-penalty is for --beam-size above 1.")


def _verify(options):
    from keras_vanilla import export
    from keras_vanilla.data.corpus import read_lines
    from keras_vanilla.data.lines import refuse_copies
    from keras_vanilla.translation.translator import Translator

    lines, exported = read_lines(options.source), options.exported
    references = options.reference and read_lines(options.reference)
    refuse_copies(options.source, options.reference, lines == references)
    translator = Translator.load(options.model)
    report = export.verify(translator, exported, lines, references)
    print(json_text(report.to_dict()) if options.json else report)
    if report.faults:
        raise ValueError(f"{exported} has faults: {' '.join(report.faults)}")
    if not report.passed and report.reasons == report.model_faults:
        raise ValueError(
            f"{options.model} does not translate these sentences, and neither does "
            f"{exported}: {' '.join(report.reasons)} Train the model longer."
        )
    if not report.passed:
        raise ValueError(
            f"{exported} translates differently from {options.model}. If the model was "
            "trained since the export, export it again."
        )


def _describe(options):
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
    description, digest = read_description(options.file), sha256_of(options.file)
    if options.json:
        print(json_text({**dataclasses.asdict(description), "sha256": digest}))
    else:
        size = Path(options.file).stat().st_size
        has_checksum = read_metadata(options.file, CHECKSUM) is not None
        known = "as its checksum says" if has_checksum else "no checksum"
        print(f"{model_name(options.file)}: {size:,} bytes, {known}")
        print(f"SHA-256 {digest}\n\n{description}")
