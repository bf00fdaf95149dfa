"""`keras-vanilla train`."""

import argparse
import dataclasses
import os
from typing import TYPE_CHECKING

from keras_vanilla.cli.console import (
    KERAS_MODEL,
    add_about_options,
    add_command,
    example_of,
    model_path,
    say,
)
from keras_vanilla.cli.corpora import (
    TrainingInput,
    add_cache_option,
    add_corpus_options,
    add_validation_options,
)
from keras_vanilla.training.config import TrainingConfig

if TYPE_CHECKING:
    from keras_vanilla.training.run_folder import RunFolder


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(commands, "train", run, "train a translator on parallel text")
    add_corpus_options(command, shards=True)
    add_cache_option(command)
    add_validation_options(command)
    add_training_options(command)


def add_training_options(command: argparse.ArgumentParser) -> None:
    """Adds the options for the training and its output folder."""
    add = command.add_argument
    add(
        "--output",
        required=True,
        metavar="DIR",
        help="a new folder; the same command on an unfinished training resumes it",
    )
    add("--overwrite", action="store_true", help="replace a training in the folder")
    add(
        "--allow-changed",
        nargs="+",
        default=(),
        metavar="NAME",
        help="resume though these differ: epochs, loss, micro_batches, optimizer, "
        "versions",
    )
    add(
        "--from",
        dest="start",
        type=model_path,
        metavar="MODEL",
        help=f"train it further: {KERAS_MODEL}",
    )
    add(
        "--tokenizer",
        nargs="+",
        metavar="FILE",
        help="your SentencePiece .model: one for both languages, or two",
    )
    for field in dataclasses.fields(TrainingConfig):  # if not given, its default
        metavar, text = field.metadata["metavar"], field.metadata["help"]
        settings = {"dest": field.name, "default": argparse.SUPPRESS, "help": text}
        if metavar is None:
            settings["action"] = "store_true"
        else:
            kind = {"N": int}.get(metavar, float if len(metavar) == 1 else str)
            nargs = "+" if isinstance(field.default, tuple) else None
            settings |= {"metavar": metavar, "type": kind, "nargs": nargs}
        add(field.metadata["flag"] or f"--{field.name.replace('_', '-')}", **settings)
    strategies = "auto, single, mirrored (several GPUs), multi-worker or tpu"
    add("--strategy", default="auto", metavar="S", help=strategies)
    add_about_options(command)


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    reuse_freed_memory()
    start(checked(options), options)


def reuse_freed_memory() -> None:
    """Makes glibc keep freed memory and reuse it in this process.

    By default glibc returns large tensors to the system and maps them again in each
    step, and the page faults take up to a fifth of a step's time on a CPU. Call this
    before TensorFlow starts its threads. It does nothing if `GLIBC_TUNABLES` is set.

    Source: glibc's `mallopt(3)`.
    """
    import ctypes  # these two only here: `--help` starts quickly
    import platform

    if platform.libc_ver()[0] != "glibc" or "GLIBC_TUNABLES" in os.environ:
        return
    trim_threshold, mmap_max, arena_max = -1, -4, -8
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(trim_threshold, -1)  # never
    mallopt(mmap_max, 0)
    mallopt(arena_max, 1)  # arenas of other threads are limited to 64 MiB


def checked(
    options: argparse.Namespace,
) -> tuple[TrainingConfig, TrainingInput, "RunFolder"]:
    """Checks the options before anything is read or written."""
    from keras_vanilla.training.run_folder import RunFolder

    names = [name for name in TrainingConfig.names() if hasattr(options, name)]
    config = TrainingConfig(**{name: getattr(options, name) for name in names})
    training_input = TrainingInput(options)
    return config, training_input, RunFolder(options.output, options.overwrite)


def start(
    training: tuple[TrainingConfig, TrainingInput, "RunFolder"],
    options: argparse.Namespace,
) -> None:
    """Trains from the beginning or from the last snapshot.

    Args:
        training: the result of `checked`.
        options: the options that were checked.
    """
    from keras_vanilla.distribution.strategies import strategy
    from keras_vanilla.training.run import TrainingRun

    config, training_input, folder = training
    with strategy(options.strategy), folder:
        training_input.read(config, folder)
        run = TrainingRun(
            config,
            folder,
            training_input.corpus,
            training_input.validation,
            tokenizer=training_input.tokenizer,
            translator=training_input.translator,
            about=training_input.about,
            allow_changed=options.allow_changed,
        )
        say(f"{len(training_input.corpus):,} pairs: {run.description}")
        if run.step is not None:
            say(f"{folder.path} has a snapshot after step {run.step:,} to resume from")
        about = run.train().about
        if not folder.is_writer:
            return
    path = folder.path
    rounding = f" --quantize {config.quantize}" if config.quantize else ""
    print(
        f"""{(path / "results.json").read_text()}
{path}/translator.keras  the translator to use
{path}/best.keras        the epoch with the best score
{path}/last.keras        the last epoch, to train further
{path}/history.csv       the numbers of each epoch

Next:
  keras-vanilla translate {path}/translator.keras {example_of(about)}
  keras-vanilla export {path}/translator.keras {path}/translator.tflite{rounding}"""
    )
