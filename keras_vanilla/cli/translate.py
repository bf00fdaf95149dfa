"""`keras-vanilla translate`."""

import argparse
import contextlib
import itertools
import re
import sys

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla._progress import Progress
from keras_vanilla.cli.console import (
    add_command,
    add_search_options,
    refuse_unwritable,
    search_settings,
)

WHITE_SPACE = re.compile(r"[\t\r\n]")


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands, "translate", run, "translate arguments, a file or standard input"
    )
    add = command.add_argument
    add("model", metavar="MODEL", help="a .keras file")
    add("text", nargs="*", metavar="TEXT")
    add("--input", metavar="FILE", help="one sentence per line")
    add("--output", metavar="FILE", help="a file that does not exist yet")
    add_search_options(command)
    add("--max-length", type=int, metavar="N", help="longest output in tokens")
    add(
        "--n-best",
        type=int,
        metavar="N",
        help="the N best of each line: its number, the score, the text, between tabs",
    )
    add(
        "--alignments",
        action="store_true",
        help="after a tab, the word alignment: 0-0 2-1 1-2 (source-target, from 0)",
    )
    add(
        "--on-too-long",
        default="refuse",
        choices=["refuse", "split"],
        help="refuse a text that is too long, or split every text into sentences",
    )


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla.translation import Translator
    from keras_vanilla.translation.batch_translation import WINDOW, warn_unfinished
    from keras_vanilla.translation.encoded_texts import EncodedTexts

    _check(options)
    settings = search_settings(options, scored=options.n_best is not None)
    texts = options.text or _input_lines(options.input)
    translator = Translator.load(options.model)
    if options.alignments:  # which need the ids as well
        texts = EncodedTexts(texts, translator.tokenizer.encode)
    ended = []
    with _progress(options, texts) as progress, _opened(options.output) as output:
        stream = translator.stream(
            texts,
            max_length=options.max_length,
            on_too_long=options.on_too_long,
            n_best=options.n_best,
            progress=progress,
            **settings,
        )
        numbered = enumerate(stream)
        while window := list(itertools.islice(numbered, WINDOW)):
            ended += [hypotheses[0].ended for _, hypotheses in window]
            for row in _rows(window, translator, texts, options):
                output.write("\t".join(row).encode() + b"\n")
    warn_unfinished(ended)


def _check(options):
    if options.text and options.input:
        raise ValueError("Give texts as arguments or a file with --input, not both.")
    if options.alignments and options.on_too_long == "split":
        raise ValueError(
            "--alignments and --on-too-long split cannot be combined: words of a text "
            "that is split are not aligned."
        )
    if options.output:
        refuse_unwritable(options.output)


def _progress(options, texts):
    """The display, or nothing where a person reads the translations as they come."""
    if options.text or (options.output is None and sys.stdout.isatty()):
        return contextlib.nullcontext()
    if options.on_too_long == "split":
        return Progress("Translating", None, "sentences")
    return Progress("Translating", len(texts), "lines")


def _opened(path):
    """Standard output, or a file that has its name only when it is whole."""
    if path is None:
        return contextlib.nullcontext(sys.stdout.buffer)
    return atomic_write(path)


def _rows(window, translator, texts, options):
    """The columns to write for some texts, a row for each hypothesis.

    For alignments `texts` must be `EncodedTexts`.
    """
    pairs = [(i, each) for i, hypotheses in window for each in hypotheses]
    # A byte piece may be a tab or a newline, which would begin a column or a row.
    rows = [[WHITE_SPACE.sub(" ", each.text)] for _, each in pairs]
    if options.n_best is not None:
        rows = [
            [str(i + 1), f"{each.score:.4f}", *row]
            for (i, each), row in zip(pairs, rows, strict=True)
        ]
    if options.alignments:
        from keras_vanilla.translation.alignment import align

        links = align(
            translator.model,
            translator.tokenizer,
            [texts[i].tolist() for i, _ in pairs],
            [each.ids for _, each in pairs],
        )
        for row, row_links in zip(rows, links, strict=True):
            row.append(" ".join(f"{source}-{target}" for source, target in row_links))
    return rows


def _input_lines(path):
    """The lines of a file or, without one, of standard input."""
    from keras_vanilla.data.corpus import read_lines

    if path is None and sys.stdin.isatty():
        print("Reading sentences from standard input, one per line.", file=sys.stderr)
    return read_lines(path or sys.stdin.buffer)
