"""`keras-vanilla translate`: lines, or with `--output-dir` many files."""

import argparse
import contextlib
import glob
import itertools
import sys
from pathlib import Path

from keras_vanilla._atomic_write import atomic_write, named_errors, refuse_unwritable
from keras_vanilla._progress import Progress
from keras_vanilla.cli.console import (
    ANY_MODEL,
    add_command,
    add_json_option,
    add_search_options,
    given_options,
    is_keras_file,
    json_text,
    model_path,
    named_options,
    say,
    search_settings,
)
from keras_vanilla.cli.input_lines import input_groups

# Options that need a `.keras` file; other models do not provide ids and scores.
KERAS_FILE_OPTIONS = (
    "target_prefix",
    "terms",
    "copy",
    "no_repeat_ngram_size",
    "n_best",
    "alignments",
    "on_too_long",
)
LINE_OPTIONS = ("output", *KERAS_FILE_OPTIONS, "json")
FILE_OPTIONS = ("engine", "workers", "threads", "keep_going")  # of --output-dir
ENGINES = ("local", "ray")
SHOWN = 256  # lines that another model than a `.keras` file translates at a time
PROBLEMS = 3  # exit status if lines have no translation, or one without an end


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(
        commands, "translate", run, "translate arguments, a file or standard input"
    )
    add = command.add_argument
    add("model", type=model_path, metavar="MODEL", help=ANY_MODEL)
    add("text", nargs="*", default=[], metavar="TEXT")
    add("--input", metavar="FILE", help="one sentence per line; - is standard input")
    add("--output", metavar="FILE", help="a file that does not exist yet")
    add(
        "--output-dir",
        metavar="FOLDER",
        help="for the translations of all files of --input, such as 'part-*.txt', "
        "under their names; a run that was killed continues",
    )
    of_files = command.add_argument_group("with --output-dir").add_argument
    of_files("--engine", choices=ENGINES, help="this process, or Ray")
    of_files("--workers", type=int, metavar="N", help="of Ray (one per machine)")
    of_files("--threads", type=int, metavar="N", help="per worker")
    of_files("--keep-going", action="store_true", help="exit with 0 despite problems")
    add_search_options(command)
    add("--max-length", type=int, metavar="N", help="longest output in tokens")
    add_json_option(command, "one JSON object per text")
    of_keras = command.add_argument_group("of a .keras file").add_argument
    of_keras("--target-prefix", metavar="TEXT", help="beginning of each translation")
    of_keras(
        "--terms",
        metavar="FILE",
        help="lines of a source term, a tab, and what its translation must contain",
    )
    of_keras("--copy", metavar="KINDS", help="to be copied: url,email,tag,number")
    of_keras(
        "--no-repeat-ngram-size",
        type=int,
        metavar="N",
        help="no N pieces in a row occur twice in a translation",
    )
    of_keras(
        "--n-best",
        type=int,
        metavar="N",
        help="the N best of each line: its number, the score, the text, between tabs",
    )
    of_keras(
        "--alignments",
        action="store_true",
        help="after a tab, the word alignment: 0-0 2-1 1-2 (source-target, from 0)",
    )
    of_keras(
        "--on-too-long",
        choices=["refuse", "split"],
        help="texts that are too long (default: refuse); split: all, into sentences",
    )


def run(options: argparse.Namespace) -> int | None:
    """Runs the command; returns the exit status, or None for 0."""
    of_files = given_options(options, FILE_OPTIONS)
    if options.output_dir is not None:
        return _translate_files(options)
    if of_files:
        raise ValueError(f"{named_options(of_files)} is for --output-dir.")

    from keras_vanilla.translation.batch_translation import (
        WINDOW,
        warn_doubtful,
        warn_unfinished,
    )
    from keras_vanilla.translation.required_terms import warn_unmet

    _check(options)
    # A file appears only when it is complete, so its first lines are not urgent.
    groups = [options.text] if options.text else None
    groups = groups or input_groups(options.input, WINDOW, at_once=bool(options.output))
    open_model = _open_keras_file if is_keras_file(options.model) else _open_other_model
    translate = open_model(options)
    ended, unmet, doubts = [], [], []
    with _progress(options, groups) as progress, _opened(options.output) as write:
        for group in groups:
            for rows in translate(group, len(ended) + 1, progress):
                write(b"".join(_line(row, options) for row in rows))
                best = [row for row in rows if row["rank"] == 1]
                ended += [row["ended"] for row in best]
                unmet += [row.get("unmet") or [] for row in best]
                doubts += [row["doubts"] or [] for row in best]
    warn_unfinished(ended)
    warn_unmet(unmet)
    warn_doubtful(doubts)
    return None


def _translate_files(options):
    """Translates files into a folder; returns the exit status."""
    others = given_options(options, LINE_OPTIONS)
    if others or options.text:
        received = named_options(others) or "a text"
        raise ValueError(f"--output-dir is only for files. Received: {received}")
    if options.input in (None, "-"):
        raise ValueError("--output-dir needs --input, such as --input 'part-*.txt'.")
    sources = [path for path in glob.glob(options.input) if Path(path).is_file()]
    if not sources:
        raise FileNotFoundError(f"There is no file {options.input}.")
    settings = search_settings(options, "max_length", "threads")

    from keras_vanilla.bulk import translate_shards

    with Progress("Translating", None, "lines") as progress:
        lines, problems = translate_shards(
            options.model,
            sources,
            options.output_dir,
            engine=options.engine or ENGINES[0],
            workers=options.workers,
            progress=progress,
            **settings,
        )
    say(f"{lines:,} lines of {len(sources):,} files are in {options.output_dir}.")
    if problems:
        path = Path(options.output_dir, "problems.tsv")
        say(f"Lines with problems: {problems:,}. They are named in {path}.")
    return PROBLEMS if problems and not options.keep_going else 0


def _open_keras_file(options):
    """Returns a function that yields lists of rows for texts, with all their values.

    Its arguments are the texts, the number of the first one and a progress display.
    """
    from keras_vanilla.translation import Translator
    from keras_vanilla.translation.alignment import align
    from keras_vanilla.translation.batch_translation import WINDOW
    from keras_vanilla.translation.encoded_texts import EncodedTexts

    names = ("max_length", "on_too_long", "n_best", "no_repeat_ngram_size")
    settings = search_settings(options, *names, scored=options.n_best is not None)
    if options.terms is not None:
        settings["terms"] = _terms_of(options.terms)
    if options.copy is not None:
        settings["copy"] = options.copy.split(",")
    translator = Translator.load(options.model)

    def translate(texts, first, progress):
        sources, more = texts, {"first_number": first, "progress": progress}
        if options.alignments:  # they need the ids as well
            sources = EncodedTexts(texts, translator.tokenizer.encode, first)
        if options.target_prefix is not None:
            more["target_prefix"] = [options.target_prefix] * len(texts)
        numbered = enumerate(translator.stream(sources, **settings, **more))
        while window := list(itertools.islice(numbered, WINDOW)):
            pairs = [(i, each) for i, hypotheses in window for each in hypotheses]
            rows = [
                {"line": first + i, "rank": rank, "source": texts[i]} | _fields(each)
                for i, hypotheses in window
                for rank, each in enumerate(hypotheses, start=1)
            ]
            if options.alignments:
                ids = [sources[i].tolist() for i, _ in pairs]
                ids = ids, [each.ids for _, each in pairs]
                links = align(translator.model, translator.tokenizer, *ids)
                for row, row_links in zip(rows, links, strict=True):
                    row["alignment"] = row_links
            yield rows

    return translate


def _fields(hypothesis):
    text, score, _, ended, unmet, doubts = hypothesis
    fields = {"translation": text, "score": score, "ended": ended}
    return fields | {"unmet": list(unmet) or None, "doubts": list(doubts) or None}


def _open_other_model(options):
    """Returns a function as `_open_keras_file` does; rows have texts and their ends."""
    from keras_vanilla.bulk import open_line_translator

    settings = search_settings(options, "max_length")
    translate_lines = open_line_translator(options.model, **settings)

    def translate(texts, first, progress):
        for start in range(0, len(texts), SHOWN):
            some, rows = texts[start : start + SHOWN], []
            pairs = zip(some, translate_lines(some), strict=True)
            for number, (text, result) in enumerate(pairs, start=first + start):
                if result.is_left_out:
                    raise ValueError(f"Text {number}: {result.problem}.")
                row = {
                    "line": number,
                    "rank": 1,
                    "source": text,
                    "translation": result.text,
                    "score": result.score,
                    "ended": result.problem is None,
                    "doubts": list(result.doubts) or None,
                }
                rows.append(row)
            if progress is not None:
                progress.update(len(rows))
            yield rows

    return translate


def _terms_of(path):
    """Reads terms and their translations from a file."""
    from keras_vanilla.data.lines import lines_of

    terms = {}
    with named_errors(path):
        lines = [line.decode("utf-8") for line in lines_of(path)]
    for number, line in enumerate(lines, start=1):
        source, *translations = map(str.strip, line.split("\t"))
        if not line.strip():
            continue
        if len(translations) != 1 or not source or not translations[0]:
            raise ValueError(
                f"{path}, line {number}: a term, a tab and its translation were "
                f"expected. Received: {line!r:.60}"
            )
        if terms.setdefault(source, translations[0]) != translations[0]:
            raise ValueError(
                f"{path}, line {number}: {source!r:.60} has another translation above."
            )
    return terms


def _check(options):
    if options.text and options.input:
        raise ValueError("Give texts as arguments or a file with --input, not both.")
    keras_options = given_options(options, KERAS_FILE_OPTIONS)
    if keras_options and not is_keras_file(options.model):
        raise ValueError(
            f"{named_options(keras_options)} is for .keras files. "
            f"Received: {options.model}"
        )
    if options.alignments and options.on_too_long == "split":
        raise ValueError(
            "--alignments and --on-too-long split cannot be combined: words of a text "
            "that is split are not aligned."
        )
    if options.output:
        refuse_unwritable(options.output)


def _progress(options, groups):
    """Returns a progress display, or None for interactive input or output."""
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
    """Yields a function that writes bytes to a file, or unbuffered to the output."""
    if path is not None:
        with atomic_write(path, parents=True) as file:
            yield file.write
        return

    def write(data):
        with named_errors("standard output"):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    yield write


def _line(row, options):
    """Formats one line of the output, as bytes."""
    from keras_vanilla.data.lines import one_line

    if options.json:
        kept = {name: value for name, value in row.items() if value is not None}
        if options.n_best is None:
            del kept["rank"]
        return json_text(kept, indent=None).encode() + b"\n"
    columns = [one_line(row["translation"])]
    if options.n_best is not None:
        columns = [str(row["line"]), f"{row['score']:.4f}", *columns]
    if options.alignments:
        links = row["alignment"]
        columns.append(" ".join(f"{source}-{target}" for source, target in links))
    return "\t".join(columns).encode() + b"\n"
