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
        target: str. Name of the option for the translation.
        shards: bool. Whether each option accepts several files; such an option would
            also consume a MODEL after it.
    """
    add = command.add_argument
    files = {"nargs": "+" if shards else None, "metavar": "FILE"}
    several = "; several files are read one after the other" if shards else ""
    add("--source", **files, help=f"one sentence per line, or .gz, .xz, .zst{several}")
    add(f"--{target}", **files, help="the translations, line by line")
    add("--pairs", **files, help="both in one table, .csv or tab-separated")
    add_columns_option(command)


def add_columns_option(command: argparse.ArgumentParser) -> None:
    """Adds `--columns` for tables, which takes numbers or names."""
    command.add_argument(
        "--columns",
        nargs=2,
        type=lambda column: int(column) if column.isdecimal() else column,
        metavar=("SOURCE", "TARGET"),
        help="columns of source and translation: numbers, such as 1 2, or names in "
        "the first row (default: the only two)",
    )


def add_cache_option(command: argparse.ArgumentParser) -> None:
    """Adds `--cache`, for commands that train."""
    command.add_argument(
        "--cache",
        metavar="DIR",
        help="store the ids of --source and --target there, not in memory",
    )


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
    return _read_files(options.source, target, options.pairs, options.columns)


def _check_files(options, target):
    """Checks that either text files or tables are given."""
    if (options.source is None) == (options.pairs is None):
        raise ValueError("Give either --source with its translation, or --pairs.")
    if options.source is not None and target is None:
        raise ValueError("--source needs the file of its translation.")
    if options.source is None and target is not None:
        raise ValueError("--pairs contains the translations: give no file of them.")
    validation = getattr(options, "validation_pairs", None)  # of commands that train
    if options.columns and not (options.pairs or validation):
        raise ValueError("--columns is for tables, such as --pairs.")


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

    def read(
        self,
        config: "TrainingConfig",
        folder: "RunFolder",
    ) -> None:
        """Reads `translator` or `tokenizer` if given, then `corpus` and `validation`.

        Args:
            config: TrainingConfig. It is checked against the options before a corpus is
                read.
            folder: RunFolder.
        """
        self._read_start(folder)
        config.check_start(self.translator, self.tokenizer)
        if self._options.cache:
            self.corpus = self._read_cache(config, folder)
        else:
            self.corpus = read_corpus(self._options, self._options.target)
        self.validation = self._read_validation()

    def _read_start(self, folder):
        from keras_vanilla.tokenizer import Tokenizer
        from keras_vanilla.translation.translator import Translator

        self.translator = self.tokenizer = None
        if self._options.start:
            folder.refuse_start(self._options.start)
            self.translator = Translator.load(self._options.start)
        if self._options.tokenizer:
            self.tokenizer = Tokenizer.from_files(*self._options.tokenizer)

    def _read_cache(self, config, folder):
        """Opens the cache of the training files, or creates it if it does not exist."""
        from keras_vanilla.data import TokenCache
        from keras_vanilla.distribution.replicas import replicas_in_force

        options = self._options
        if self.translator is None and self.tokenizer is None:
            self.tokenizer = folder.tokenizer() or self._train_tokenizer(config)
        if replicas_in_force().in_other_processes:
            TokenCache(options.cache)  # only one process may create it
        return TokenCache.make(
            options.source,
            options.target,
            self.tokenizer or self.translator.tokenizer,
            options.cache,
            progress=sys.stderr,
        )

    def _train_tokenizer(self, config):
        """Trains a tokenizer on the training files without keeping them in memory."""
        from keras_vanilla.data import FileLines
        from keras_vanilla.training.untrained import train_tokenizer

        source, target = self._options.source, self._options.target
        return train_tokenizer(config, FileLines(*source), FileLines(*target))

    def _read_validation(self):
        options = self._options
        source, pairs = options.validation_source, options.validation_pairs
        if not (source or pairs):
            return None
        return _read_files(source, options.validation_target, pairs, options.columns)


def _read_files(source, target, pairs, columns):
    from keras_vanilla.data import ParallelCorpus

    if pairs:
        corpus = ParallelCorpus.from_table(pairs, columns)
    else:
        corpus = ParallelCorpus.from_files(source, target)
    _report(corpus, corpus.origin)
    return corpus


def _report(corpus, name):
    """Reports which lines are left out, and why."""
    from keras_vanilla._checks import some_of

    for reason, lines in corpus.report.items():
        say(
            f"{name}: {len(lines)} pairs are left out, {reason}: lines {some_of(lines)}"
        )
