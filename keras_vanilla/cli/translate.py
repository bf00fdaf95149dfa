"""`keras-vanilla translate`."""

import argparse
import contextlib
import itertools
import sys

from keras_vanilla._atomic_write import atomic_write, named_errors
from keras_vanilla._progress import Progress
from keras_vanilla.cli.console import (
    add_command,
    add_search_options,
    refuse_unwritable,
    search_settings,
)
from keras_vanilla.cli.input_lines import input_groups
from keras_vanilla.cli.translate_files import (
    add_file_options,
    translate_files,
    translates_files,
)


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands, "translate", run, "translate arguments, a file or standard input"
    )
    add = command.add_argument
    add(
        "model",
        metavar="MODEL",
        help="a .keras file; with --output-dir also a .tflite file or CTranslate2's",
    )
    add("text", nargs="*", default=[], metavar="TEXT")
    add("--input", metavar="FILE", help="one sentence per line; - is standard input")
    add("--output", metavar="FILE", help="a file that does not exist yet")
    add_file_options(command)
    add_search_options(command)
    add("--max-length", type=int, metavar="N", help="longest output in tokens")
    add(
        "--target-prefix",
        metavar="TEXT",
        help="what every translation begins with",
    )
    add(
        "--no-repeat-ngram-size",
        type=int,
        metavar="N",
        help="no N pieces in a row occur twice in a translation",
    )
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
    if translates_files(options):
        return translate_files(options)

    from keras_vanilla.translation import Translator
    from keras_vanilla.translation.batch_translation import WINDOW, warn_unfinished

    _check(options)
    settings = search_settings(options, scored=options.n_best is not None)
    names = ("max_length", "on_too_long", "n_best", "no_repeat_ngram_size")
    settings |= {name: getattr(options, name) for name in names}
    # A file has its name only when it is whole: nobody waits for its first lines.
    groups = [options.text] if options.text else None
    groups = groups or input_groups(options.input, WINDOW, at_once=bool(options.output))
    translator = Translator.load(options.model)
    ended = []
    with _progress(options, groups) as progress, _opened(options.output) as write:
        settings["progress"] = progress
        for group in groups:
            first = len(ended) + 1
            for rows, ends in _translated(group, first, translator, settings, options):
                write(b"".join("\t".join(row).encode() + b"\n" for row in rows))
                ended += ends
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


def _progress(options, groups):
    """The display, or nothing where a person types, or reads what comes."""
    typed = (
        not isinstance(groups, list) and options.input is None and sys.stdin.isatty()
    )
    read = options.output is None and sys.stdout.isatty()
    if options.text or typed or read:
        return contextlib.nullcontext()
    if options.on_too_long == "split":
        return Progress("Translating", None, "sentences")
    total = len(groups[0]) if isinstance(groups, list) else None
    return Progress("Translating", total, "lines")


@contextlib.contextmanager
def _opened(path):
    """A function that writes bytes to a file, or to standard output at once."""
    if path is not None:
        with atomic_write(path) as file:
            yield file.write
        return

    def write(data):
        with named_errors("standard output"):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    yield write


def _translated(texts, first, translator, settings, options):
    """Yields the rows to write and which texts have an end, for some texts at a time.

    The texts' numbers begin with `first`.
    """
    from keras_vanilla.translation.batch_translation import WINDOW
    from keras_vanilla.translation.encoded_texts import EncodedTexts

    if options.alignments:  # which need the ids as well
        texts = EncodedTexts(texts, translator.tokenizer.encode, first)
    if options.target_prefix is not None:
        settings = {**settings, "target_prefix": [options.target_prefix] * len(texts)}
    numbered = enumerate(translator.stream(texts, first_number=first, **settings))
    while window := list(itertools.islice(numbered, WINDOW)):
        pairs = [(i, each) for i, hypotheses in window for each in hypotheses]
        rows = [_columns(first + i, each, options) for i, each in pairs]
        if options.alignments:
            _add_alignments(rows, pairs, texts, translator)
        yield rows, [hypotheses[0].ended for _, hypotheses in window]


def _columns(number, hypothesis, options):
    from keras_vanilla.data.lines import one_line

    text = one_line(hypothesis.text)
    if options.n_best is None:
        return [text]
    return [str(number), f"{hypothesis.score:.4f}", text]


def _add_alignments(rows, pairs, texts, translator):
    """Adds a column to the rows of pairs of a text's place and a hypothesis."""
    from keras_vanilla.translation.alignment import align

    links = align(
        translator.model,
        translator.tokenizer,
        [texts[i].tolist() for i, _ in pairs],
        [each.ids for _, each in pairs],
    )
    for row, row_links in zip(rows, links, strict=True):
        row.append(" ".join(f"{source}-{target}" for source, target in row_links))
