"""`keras-vanilla probe`."""

import argparse

from keras_vanilla.cli.console import (
    ANY_MODEL,
    add_command,
    add_json_option,
    add_search_options,
    json_text,
    line_search_settings,
    model_path,
)

MOST_FAILURES = 10


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands, "probe", run, "what a translator copies, and what confuses it"
    )
    add = command.add_argument
    add("model", nargs="?", type=model_path, metavar="MODEL", help=ANY_MODEL)
    add(
        "--command",
        dest="program",
        help="a program that translates lines, instead of MODEL",
    )
    add("--language", help="language of the sentences: de (the default), en, es or fr")
    add("--sentences", metavar="FILE", help="use these sentences, one per line")
    add(
        "--count",
        type=int,
        default=50,
        metavar="N",
        help="inputs of each kind (default: 50)",
    )
    add("--failures", action="store_true", help="also show what went wrong")
    add_json_option(command, "everything as one JSON object")
    add_search_options(command)


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla.probing import probe

    if (options.model is None) == (options.program is None):
        raise ValueError("Give a MODEL or a --command, one of the two.")
    if options.json and options.failures:
        raise ValueError("--json lists all failures: leave --failures out.")
    sentences = _sentences(options)
    result = probe(_translator(options), sentences, options.count)
    if options.json:
        print(json_text(result.to_dict()))
        return
    print(result.table())
    if options.failures:
        for kind in result.kinds:
            for text, translation in kind.failures[:MOST_FAILURES]:
                print(f"{kind.kind}: {text[:200]!r} -> {translation[:200]!r}")


def _sentences(options):
    from keras_vanilla.data.lines import Lines
    from keras_vanilla.probing.inputs import SENTENCES

    if options.sentences is not None:
        if options.language is not None:
            raise ValueError("Give --language or --sentences, not both.")
        return list(Lines.read(options.sentences))
    language = options.language or "de"
    if language not in SENTENCES:
        raise ValueError(
            f"--language must be one of {', '.join(SENTENCES)}; for others give "
            f"--sentences. Received: {language}"
        )
    return SENTENCES[language]


def _translator(options):
    """Returns a function that translates texts."""
    from keras_vanilla.bulk import LineCommand, open_line_translator

    settings = line_search_settings(options)
    model = options.model
    if options.program is not None:
        if settings:
            raise ValueError(
                "Options of the search are for MODEL: a --command has its own."
            )
        model = LineCommand(options.program)
    lines = open_line_translator(model, **settings)
    return lambda texts: [translation.text for translation in lines(texts)]
