"""`keras-vanilla translate`."""

import contextlib
import itertools
import os
import re
import sys
from pathlib import Path

from keras_vanilla.cli.console import (
    Counter,
    add_command,
    add_search_options,
    refuse_unwritable,
    search_settings,
)

WHITE_SPACE = re.compile(r"[\t\r\n]")


def add_to(commands):
    """Adds the command."""
    command = add_command(
        commands, "translate", run, "translate arguments, a file or standard input"
    )
    add = command.add_argument
    add("model", metavar="MODEL", help="a .keras file")
    add("text", nargs="*", metavar="TEXT")
    add("--input", metavar="FILE", help="a sentence a line")
    add("--output", metavar="FILE", help="a file that is not there yet")
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
        help="after a tab, which word comes from which: 0-0 2-1 1-2 (from 0, source "
        "first)",
    )
    add(
        "--long",
        default="refuse",
        choices=["refuse", "split"],
        help="refuse a text that is too long, or split every text into sentences",
    )


def run(options):
    """Runs the command."""
    from keras_vanilla.translation.batch_translation import WINDOW, warn_unfinished
    from keras_vanilla.translation.translator import Translator

    _check(options)
    settings = search_settings(options, scored=options.n_best is not None)
    texts = options.text or _input_lines(options.input)
    translator = Translator.load(options.model)
    split = options.long == "split"
    counter = Counter(*(("sentences",) if split else ("lines", len(texts))))
    stream = translator.stream(
        texts,
        max_length=options.max_length,
        long=options.long,
        n_best=options.n_best,
        done=counter.add,
        **settings,
    )
    numbered = enumerate(stream)
    ended = []
    with _opened(options.output) as output:
        while some := list(itertools.islice(numbered, WINDOW)):
            ended += [found[0].ended for _, found in some]
            for row in _rows(some, translator, texts, options):
                output.write("\t".join(row).encode() + b"\n")
    counter.clear()
    warn_unfinished(ended)


def _check(options):
    if options.text and options.input:
        raise ValueError("Give texts as arguments or a file with --input, not both.")
    if options.alignments and options.long == "split":
        raise ValueError("--alignments and --long split do not go together.")
    if options.output:
        refuse_unwritable(options.output)


@contextlib.contextmanager
def _opened(path):
    """Standard output, or a file that has its name only when it is whole."""
    if path is None:
        yield sys.stdout.buffer
        return
    unfinished = Path(f"{path}.unfinished")
    with open(unfinished, "wb") as output:
        yield output
    os.replace(unfinished, path)


def _rows(numbered, translator, texts, options):
    """The columns of what is written of some texts, a row for each hypothesis."""
    pairs = [(i, each) for i, found in numbered for each in found]
    # A byte piece may be a tab or a newline, which here would begin something else.
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
            translator.encode([texts[i] for i, _ in pairs]),
            [each.ids for _, each in pairs],
        )
        for row, of_row in zip(rows, links, strict=True):
            row.append(" ".join(f"{source}-{target}" for source, target in of_row))
    return rows


def _input_lines(path):
    """The lines of a file or, without one, of standard input."""
    from keras_vanilla.data.corpus import read_lines

    if path is None and sys.stdin.isatty():
        print("Reading sentences from standard input, one a line.", file=sys.stderr)
    return read_lines(path or sys.stdin.buffer)
