"""`keras-vanilla translate`."""

import contextlib
import itertools
import sys
from pathlib import Path
from typing import NamedTuple

from keras_vanilla.cli.console import (
    add_command,
    add_search_options,
    progress,
    refuse_existing,
)


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
    from keras_vanilla.hypotheses import ROWS, warn_unfinished
    from keras_vanilla.translator import Translator

    _check(options)
    texts = options.text or _input_lines(options.input)
    translator = Translator.load(options.model)
    stream = translator.stream(
        texts,
        options.beam_size,
        options.length_penalty,
        options.max_length,
        options.long,
        options.n_best,
    )
    numbered = enumerate(progress(stream, len(texts)))
    first = []
    with _opened(options.output) as output:
        while some := list(itertools.islice(numbered, ROWS)):
            first += [found[0] for _, found in some]
            rows = _rows(some, texts, options)
            if options.alignments:
                _add_alignments(rows, translator)
            for row in rows:
                output.write("\t".join(row.columns).encode() + b"\n")
    warn_unfinished(first)


def _check(options):
    if options.text and options.input:
        raise ValueError("Give texts as arguments or a file with --input, not both.")
    if options.alignments and options.long == "split":
        raise ValueError("--alignments and --long split do not go together.")
    if options.output:
        refuse_existing(options.output)
        if not Path(options.output).parent.is_dir():
            raise FileNotFoundError(f"There is no folder to write {options.output} in.")


def _opened(path):
    """A binary file, or standard output, which stays open."""
    if path:
        return open(path, "xb")
    return contextlib.nullcontext(sys.stdout.buffer)


def _rows(numbered, texts, options):
    """What is written of some texts: a row for each, or for each of its n best."""
    rows = []
    for i, found in numbered:
        for each in found:
            # A byte piece may be a newline; here it would shift every line after it.
            text = " ".join(each.text.split("\n"))
            place = (
                [str(i + 1), f"{each.score:.4f}"] if options.n_best is not None else []
            )
            rows.append(_Row(texts[i], text, [*place, text]))
    return rows


class _Row(NamedTuple):
    source: str
    translation: str
    columns: list[str]


def _add_alignments(rows, translator):
    links = translator.align(
        [row.source for row in rows], [row.translation for row in rows]
    )
    for row, of_row in zip(rows, links, strict=True):
        row.columns.append(" ".join(f"{source}-{target}" for source, target in of_row))


def _input_lines(path):
    """The lines of a file or, without one, of standard input."""
    from keras_vanilla.text.corpus import read_lines

    if path is None and sys.stdin.isatty():
        print("Reading sentences from standard input, one a line.", file=sys.stderr)
    return read_lines(path or sys.stdin.buffer)
