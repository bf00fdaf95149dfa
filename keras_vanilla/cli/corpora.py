"""Options for parallel text in files."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from keras_vanilla.cli.console import about_settings, say

if TYPE_CHECKING:
    from keras_vanilla.data import ParallelCorpus
    from keras_vanilla.training.config import TrainingConfig
    from keras_vanilla.training.run_folder import RunFolder


def add_corpus_options(
    command: argparse.ArgumentParser, target: str = "target", shards: bool = False
) -> None:
    """Adds `--source` and related options, for commands that read parallel text.

    Args:
        command: the parser to add them to.
        target: str. Name of the option for the translation, beside `--target`.
        shards: bool. Whether each option accepts several files; such an option would
            also consume a MODEL after it.
    """
    add = command.add_argument
    files = {"nargs": "+" if shards else None, "metavar": "FILE"}
    also = () if target == "target" else ("--target",)
    several = "; several files are read one after the other" if shards else ""
    add("--source", **files, help=f"one sentence per line, or .gz, .xz, .zst{several}")
    add(f"--{target}", *also, **files, help="the translations, line by line")
    add("--pairs", **files, help="both in one table, .csv or tab-separated")
    add_table_options(command)


def add_table_options(command: argparse.ArgumentParser) -> None:
    """Adds `--columns` and the other options of tables."""
    add = command.add_argument
    add(
        "--columns",
        nargs=2,
        type=lambda column: int(column) if column.isdecimal() else column,
        metavar=("SOURCE", "TARGET"),
        help="their numbers, from 1, or names in the first row (default: the only two)",
    )
    names = "whether the first row has names (default: if --columns has names)"
    add("--header", action=argparse.BooleanOptionalAction, help=names)
    add(
        "--delimiter",
        type=lambda delimiter: {"tab": "\t"}.get(delimiter, delimiter),
        metavar="CHARACTER",
        help="between columns, such as ';', or tab (default: comma in .csv, or tab)",
    )
    add("--encoding", metavar="NAME", help="of tables, such as utf-16 (default: utf-8)")
    add(
        "--on-bad-rows",
        choices=("error", "skip"),
        help="skip leaves them out, and says which (default: error)",
    )


def add_cache_option(command: argparse.ArgumentParser) -> None:
    """Adds `--cache`, for commands that train."""
    ids = "keep the ids of --source and --target there, not in memory"
    command.add_argument("--cache", metavar="DIR", help=ids)


def add_validation_options(command: argparse.ArgumentParser) -> None:
    """Adds `--validation-source`, `--validation-target` and `--validation-pairs`."""
    add = command.add_argument
    add("--validation-source", metavar="FILE", help="sentences to validate on")
    add("--validation-target", metavar="FILE", help="their translations")
    add("--validation-pairs", metavar="FILE", help="both in one table")


def read_corpus(
    options: argparse.Namespace, target: str | list[str] | None
) -> "ParallelCorpus":
    """Reads the corpus given by the options, and reports lines that are left out.

    Args:
        options: with the attributes of `add_corpus_options`.
        target: path of the target file, several paths, or None.
    """
    _check_files(options, target)
    return _read_files(options.source, target, options.pairs, _table(options))


def _check_files(options, target):
    """Checks that either text files or tables are given."""
    if (options.source is None) == (options.pairs is None):
        raise ValueError("Give either --source with its translation, or --pairs.")
    if options.source is not None and target is None:
        raise ValueError("--source needs the file of its translation.")
    if options.source is None and target is not None:
        raise ValueError("--pairs contains the translations: give no file of them.")
    validation = getattr(options, "validation_pairs", None)  # of commands that train
    if not (options.pairs or validation):
        for name in _table(options):
            option = name.replace("_", "-")
            raise ValueError(f"--{option} is for tables, such as --pairs.")


def _table(options):
    """The settings of tables that are given, as arguments of `from_table`."""
    names = "columns", "header", "delimiter", "encoding", "on_bad_rows"
    given = {name: getattr(options, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


class TrainingInput:
    """The inputs of a training, given by the options of `keras-vanilla train`.

    Args:
        options: with the attributes of `add_corpus_options`, `add_cache_option`,
            `add_validation_options` and `add_about_options`, and `start`, `tokenizer`
            and `output`.
    Attributes:
        about: About with the values of the options.
    Raises:
        ValueError: if options contradict each other. Nothing is read in this case.
    """

    def __init__(self, options: argparse.Namespace):
        from keras_vanilla._about import About

        self._options = options
        self.about = About(**about_settings(options))
        self.translator = self.tokenizer = self.validation = None
        _check_files(options, options.target)
        if options.cache and options.source is None:
            raise ValueError("--cache is for --source and --target.")
        output = os.path.realpath(options.output)
        if options.cache and os.path.realpath(options.cache) == output:
            raise ValueError(
                "--cache and --output must be two folders. Received: "
                f"{options.cache} for both"
            )
        if (options.validation_source is None) != (options.validation_target is None):
            raise ValueError(
                "--validation-source and --validation-target must be given together."
            )
        if options.validation_pairs and options.validation_source:
            raise ValueError(
                "--validation-pairs contains the translations: give no "
                "--validation-source."
            )
        if options.tokenizer and len(options.tokenizer) > 2:
            raise ValueError(
                "--tokenizer takes one file or two. Received: "
                f"{len(options.tokenizer)} files"
            )

    def read(self, config: "TrainingConfig", folder: "RunFolder") -> None:
        """Reads `translator` or `tokenizer` if given, then `corpus` and `validation`.

        Args:
            config: TrainingConfig. It is checked against the options before a corpus is
                read.
            folder: RunFolder.
        """
        from keras_vanilla.tokenizer import Tokenizer
        from keras_vanilla.translation.translator import Translator

        options = self._options
        if options.start:
            folder.refuse_start(options.start)
            self.translator = Translator.load(options.start)
        if options.tokenizer:
            self.tokenizer = Tokenizer.from_files(*options.tokenizer)
        config.check_start(self.translator, self.tokenizer)
        if options.cache:
            self.corpus = self._read_cache(config, folder)
        else:
            self.corpus = read_corpus(options, options.target)
        files = options.validation_source, options.validation_target
        pairs = options.validation_pairs
        if files[0] or pairs:
            self.validation = _read_files(*files, pairs, _table(options))

    def _read_cache(self, config, folder):
        """Opens the cache of the training files, or creates it if it does not exist."""
        from keras_vanilla.data import FileLines, TokenCache
        from keras_vanilla.distribution.replicas import replicas_in_force
        from keras_vanilla.training.untrained import train_tokenizer

        files = self._options.source, self._options.target
        if self.translator is None and self.tokenizer is None:
            self.tokenizer = folder.tokenizer()
            if self.tokenizer is None:
                lines = [FileLines(*paths) for paths in files]  # not kept in memory
                self.tokenizer = train_tokenizer(config, *lines)
        if replicas_in_force().in_other_processes:
            TokenCache(self._options.cache)  # only one process may create it
        tokenizer = self.tokenizer or self.translator.tokenizer
        return TokenCache.make(
            *files, tokenizer, self._options.cache, progress=sys.stderr
        )


def _read_files(source, target, pairs, table):
    """Reads text files or a table, and reports which lines are left out, and why."""
    from keras_vanilla._checks import some_of
    from keras_vanilla.data import ParallelCorpus

    if pairs:
        corpus = ParallelCorpus.from_table(pairs, **table)
    else:
        corpus = ParallelCorpus.from_files(source, target)
    for reason, lines in corpus.report.items():
        shown = some_of(lines, 5 if reason == "empty" else len(lines))
        left_out = f"{len(lines)} pairs are left out, {reason}: lines {shown}"
        say(f"{corpus.origin}: {left_out}")
    return corpus
