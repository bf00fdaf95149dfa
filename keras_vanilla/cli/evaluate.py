"""`keras-vanilla evaluate`."""

import argparse
import dataclasses

from keras_vanilla.cli.console import (
    ANY_MODEL,
    add_command,
    add_json_option,
    add_search_options,
    is_keras_file,
    json_text,
    model_path,
    search_settings,
)
from keras_vanilla.cli.corpora import add_corpus_options, read_corpus


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(commands, "evaluate", run, "BLEU and chrF of a model")
    add = command.add_argument
    add("model", type=model_path, metavar="MODEL", help=ANY_MODEL)
    add_corpus_options(command, target="reference")
    add_search_options(command)
    add("--lowercase", action="store_true", help="ignore case")
    add("--tokenized", action="store_true", help="BLEU of text split by Moses's rules")
    add("--language", metavar="L", help="the target language, for --tokenized")
    add(
        "--on-too-long",
        default="leave-out",
        choices=["leave-out", "refuse", "split"],
        help="sources that are too long (default: leave-out); split: into sentences",
    )
    shown = "number of worst and best sentences to show"
    add("--sentences", type=int, default=3, metavar="N", help=shown)
    add_json_option(command, "everything as one JSON object")


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla.translation import worst_and_best

    if options.sentences < 0:
        raise ValueError(
            f"--sentences must be at least 0. Received: {options.sentences}"
        )
    if options.language and not options.tokenized:
        raise ValueError("--language is for --tokenized.")
    if options.tokenized and not options.language:
        raise ValueError("--tokenized needs the target language: --language en")
    result = (_of_keras if is_keras_file(options.model) else _of_lines)(options)
    chosen = worst_and_best(
        result.corpus, result.translations, options.sentences, options.lowercase
    )
    sentences = dict(zip(("worst", "best"), chosen, strict=True))
    print((_to_json if options.json else _to_text)(result, sentences))


def _of_keras(options):
    """Computes the scores of a `.keras` file."""
    from keras_vanilla.translation import Translator, score

    settings = search_settings(options)
    translator = Translator.load(options.model)
    return score(
        translator,
        read_corpus(options, options.reference),
        **settings,
        lowercase=options.lowercase,
        tokenized=options.language,
        on_too_long=options.on_too_long.replace("-", "_"),
    )


def _of_lines(options):
    """Computes the scores of any other model."""
    from keras_vanilla.bulk import open_line_translator
    from keras_vanilla.translation.evaluation import (
        score_translations,
        without_too_long,
    )

    if options.on_too_long == "split":
        raise ValueError(
            f"--on-too-long split is for .keras files. Received: {options.model}"
        )
    translate = open_line_translator(options.model, **search_settings(options))
    corpus = read_corpus(options, options.reference)
    results = translate(list(corpus.sources))
    left_out = [result.is_left_out for result in results]
    if options.on_too_long == "refuse" and any(left_out):
        first = left_out.index(True)
        line = corpus.line_numbers[first]
        raise ValueError(f"{corpus.origin}, line {line}: {results[first].problem}.")
    corpus = without_too_long(corpus, left_out, "are longer than the model takes")
    results = [result for result in results if not result.is_left_out]
    return score_translations(
        corpus,
        [result.text for result in results],
        [result.problem is None for result in results],
        lowercase=options.lowercase,
        tokenized=options.language,
    )


def _to_json(result, sentences):
    """Formats the result as JSON."""
    names = "bleu", "chrf", "signature", "chrf_signature", "unfinished"
    fields = {name: getattr(result, name) for name in names}
    fields |= {"lines": len(result.translations), "left_out": result.corpus.report}
    for name, some in sentences.items():
        fields[name] = [dataclasses.asdict(each) for each in some]
    return json_text(fields)


def _to_text(result, sentences):
    """Formats the result as readable text."""
    count, unfinished = len(result.translations), result.unfinished
    left_out = sum(map(len, result.corpus.report.values()))
    texts = [
        f"BLEU {result.bleu:.2f}  chrF {result.chrf:.2f}  ({count} lines)",
        result.signature,
        *([f"{left_out} pairs are left out"] if left_out else []),
        *([f"{len(unfinished)} translations have no end"] if unfinished else []),
    ]
    for name, some in sentences.items():
        for each in some:
            mark = "  (no end)" if each.line in unfinished else ""
            texts.append(
                f"\n{name}, line {each.line}, chrF {each.chrf:.1f}{mark}\n"
                f"  source      {each.source}\n"
                f"  translated  {each.translation}\n"
                f"  reference   {each.reference}"
            )
    return "\n".join(texts)
