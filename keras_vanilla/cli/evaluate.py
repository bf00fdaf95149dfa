"""`keras-vanilla evaluate`."""

import argparse
import dataclasses
import json

from keras_vanilla.cli.console import add_command, add_search_options, search_settings
from keras_vanilla.cli.corpora import add_corpus_options, read_corpus


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(commands, "evaluate", run, "BLEU and chrF of a model")
    add = command.add_argument
    add("model", metavar="MODEL", help="a .keras file")
    add_corpus_options(command, target="reference")
    add("--split", help="of a public corpus (test)")
    add_search_options(command)
    add("--lowercase", action="store_true", help="ignore case")
    add("--tokenized", action="store_true", help="BLEU of text split by Moses's rules")
    add("--language", metavar="L", help="the target language, for --tokenized")
    add(
        "--on-too-long",
        default="leave-out",
        choices=["leave-out", "refuse", "split"],
        help="sources that are too long: leave them out (the default), refuse them, or "
        "split every source into sentences",
    )
    add("--sentences", type=int, default=3, metavar="N", help="worst and best to show")
    add("--json", action="store_true", help="everything as one JSON object")


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla.translation import Translator, score, worst_and_best

    _check(options)
    settings = search_settings(options)
    translator = Translator.load(options.model)
    corpus = read_corpus(options, options.reference, options.split or "test")
    result = score(
        translator,
        corpus,
        **settings,
        lowercase=options.lowercase,
        tokenized=options.language,
        on_too_long=options.on_too_long.replace("-", "_"),
    )
    worst, best = worst_and_best(
        result.corpus, result.translations, options.sentences, options.lowercase
    )
    to_text = _to_json if options.json else _to_text
    print(to_text(result, worst, best))


def _check(options):
    if options.sentences < 0:
        raise ValueError(
            f"--sentences must be at least 0. Received: {options.sentences}"
        )
    if options.language and not options.tokenized:
        raise ValueError("--language is for --tokenized.")
    if options.tokenized and not options.language:
        raise ValueError(
            "--tokenized needs the target language, whose rules differ, such as "
            "--language en."
        )
    if options.split and options.corpus is None:
        raise ValueError("--split is for --corpus.")


def _to_json(result, worst, best):
    """The result for a program."""
    fields = {
        "bleu": result.bleu,
        "chrf": result.chrf,
        "signature": result.signature,
        "chrf_signature": result.chrf_signature,
        "unfinished": result.unfinished,
        "lines": len(result.translations),
        "left_out": result.corpus.report,
    }
    for name, sentences in (("worst", worst), ("best", best)):
        fields[name] = [dataclasses.asdict(sentence) for sentence in sentences]
    return json.dumps(fields, ensure_ascii=False, indent=2)


def _to_text(result, worst, best):
    """The result for a person."""
    count, unfinished = len(result.translations), result.unfinished
    texts = [
        f"BLEU {result.bleu:.2f}  chrF {result.chrf:.2f}  ({count} lines)",
        result.signature,
    ]
    left_out = sum(map(len, result.corpus.report.values()))
    if left_out:
        texts.append(f"{left_out} pairs are left out")
    if unfinished:
        texts.append(f"{len(unfinished)} translations have no end")
    for name, sentences in (("worst", worst), ("best", best)):
        for sentence in sentences:
            mark = "  (no end)" if sentence.line in unfinished else ""
            texts.append(
                f"\n{name}, line {sentence.line}, chrF {sentence.chrf:.1f}{mark}\n"
                f"  source      {sentence.source}\n"
                f"  translated  {sentence.translation}\n"
                f"  reference   {sentence.reference}"
            )
    return "\n".join(texts)
