"""`keras-vanilla train`."""

import argparse
import functools
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

if TYPE_CHECKING:
    from keras_vanilla.training.config import TrainingConfig
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
    _add_output(command)
    _add_model(command)
    # Options that are not given have the defaults of `TrainingConfig`.
    add = functools.partial(command.add_argument, default=argparse.SUPPRESS)
    _add_recipe(add)
    _add_further_training(add)
    _add_regularization(add)
    _add_end(add)
    _add_filters(add)
    _add_devices(command)
    add_about_options(command)


def _add_numbers(add, options):
    """Adds options such as "--epochs N" with their help; N is an int, else a float."""
    for option, text in options.items():
        name, metavar = option.split()
        add(name, type=int if metavar == "N" else float, metavar=metavar, help=text)


def _add_output(command):
    add = command.add_argument
    add(
        "--output",
        required=True,
        metavar="DIR",
        help="a new folder; the same command on an unfinished training resumes it",
    )
    add(
        "--overwrite",
        action="store_true",
        help="replace another training in the folder",
    )
    add(
        "--allow-changed",
        nargs="+",
        default=(),
        metavar="NAME",
        help="resume though these differ: epochs, loss, micro_batches, optimizer, "
        "versions",
    )


def _add_model(command):
    add = command.add_argument
    add(
        "--preset",
        help="size: tiny, small, base, big, phone, phone-small or phone-tiny (default: "
        "small)",
    )
    add(
        "--pre-norm",
        dest="normalize_first",
        action="store_true",
        default=None,
        help="normalize before each sublayer, not after it: learns sooner",
    )
    add(
        "--max-length",
        type=int,
        metavar="N",
        help="longest text in tokens (default: 512)",
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
    add(
        "--vocabulary-size",
        type=int,
        metavar="N",
        help="number of pieces (default: by the size of the corpus)",
    )
    add(
        "--separate-vocabularies",
        action="store_true",
        help="a vocabulary for each language, not one for both",
    )
    add(
        "--precision",
        dest="dtype",
        choices=["float32", "mixed_bfloat16"],
        help="dtype in which the layers compute (default: float32)",
    )


def _add_recipe(add):
    """Adds the recipe, the options that it sets, and the learning rate."""
    add(
        "--recipe",
        metavar="auto|paper",
        help="auto, by the size of the corpus; the next four options override it",
    )
    _add_numbers(
        add,
        {
            "--epochs N": "number of passes over the corpus",
            "--tokens-per-batch N": "target positions of a batch, padding included",
            "--warmup-steps N": "steps in which the learning rate rises to its highest",
            "--dropout P": "share of activations to drop",
            "--learning-rate X": "use this constant learning rate, without warm-up",
            "--cooldown-epochs N": "number of last epochs, such as half, in which the "
            "rate falls to 0",
        },
    )


def _add_further_training(add):
    """Adds the options for further training of a translator."""
    add(
        "--freeze",
        nargs="+",
        metavar="PART",
        help="with --from, leave as they are: embeddings, encoder or decoder",
    )
    add(
        "--quantize",
        metavar="int8|int4",
        help="with --from, train for .tflite files with these weights",
    )


def _add_regularization(add):
    """Adds the options for regularisation by the loss, the updates and the text."""
    _add_numbers(
        add,
        {
            "--label-smoothing P": "share of each label's probability that all tokens "
            "get (default: 0.1)",
            "--clip-norm X": "largest norm of the gradients",
            "--weight-decay X": "share of each weight to subtract, times the learning "
            "rate",
            "--sampling A": "draw a new segmentation of each text in every epoch, such "
            "as 0.2",
        },
    )
    add(
        "--robust",
        action="store_true",
        help="also train on typos, capitals and things to copy",
    )


def _add_end(add):
    """Adds the options for the end of a training, and the seed."""
    _add_numbers(
        add,
        {
            "--average-last N": "average the weights of the last N epochs (default: 5)",
            "--patience N": "end after N epochs without a lower validation "
            "cross-entropy",
            "--seed N": "seed of initial weights, order and dropout (default: 0)",
        },
    )


def _add_filters(add):
    _add_numbers(
        add,
        {
            "--max-tokens N": "leave out longer pairs (default: 256, or the model's "
            "longest text)",
            "--max-length-ratio R": "leave out pairs with more than R times the tokens "
            "on one side",
        },
    )
    add(
        "--drop-duplicates",
        action="store_true",
        help="leave out pairs that occurred before",
    )


def _add_devices(command):
    add = command.add_argument
    add(
        "--strategy",
        default="auto",
        metavar="S",
        help="auto, single, mirrored (several GPUs), multi-worker or tpu",
    )
    add(
        "--micro-batches",
        type=int,
        default=argparse.SUPPRESS,
        metavar="N",
        help="train on each batch in N parts, for less memory",
    )


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
) -> tuple["TrainingConfig", TrainingInput, "RunFolder"]:
    """Checks the options before anything is read or written."""
    from keras_vanilla.training.config import TrainingConfig
    from keras_vanilla.training.run_folder import RunFolder

    names = [name for name in TrainingConfig.names() if hasattr(options, name)]
    config = TrainingConfig(**{name: getattr(options, name) for name in names})
    training_input = TrainingInput(options)
    return config, training_input, RunFolder(options.output, options.overwrite)


def start(
    training: tuple["TrainingConfig", TrainingInput, "RunFolder"],
    options: argparse.Namespace,
) -> None:
    """Trains from the beginning or from the last snapshot.

    Args:
        training: the result of `checked`.
        options: the options that were checked.
    """
    from keras_vanilla.distribution.strategies import strategy

    config, training_input, folder = training
    with strategy(options.strategy), folder:
        training_input.read(config, folder)
        _train(config, folder, training_input, options.allow_changed)


def _train(config, folder, training_input, allow_changed):
    from keras_vanilla.training.run import TrainingRun

    run = TrainingRun(
        config,
        folder,
        training_input.corpus,
        training_input.validation,
        tokenizer=training_input.tokenizer,
        translator=training_input.translator,
        about=training_input.about,
        allow_changed=allow_changed,
    )
    say(f"{len(training_input.corpus):,} pairs: {run.description}")
    step = None if folder.overwrite else folder.snapshots.last_step()
    if step is not None:
        say(f"{folder.path} has a snapshot after step {step:,} to resume from")
    translator = run.train()
    if folder.is_writer:
        print(folder.results_path.read_text(), end="")
        _print_next_steps(
            folder.path,
            bool(training_input.validation),
            run.config.quantize,
            translator.about,
        )


def _print_next_steps(folder, is_validated, quantize, about):
    best = f"lowest {'validation' if is_validated else 'training'} cross-entropy"
    if is_validated and quantize:
        best = "highest validation chrF"
    exported = f"{folder}/translator.tflite"
    if quantize:
        exported += f" --quantize {quantize}"
    logs = "history.csv       the numbers of each epoch"
    if (folder / "logs").exists():
        logs = "logs              for TensorBoard; history.csv has the same numbers"
    print(
        f"""
{folder}/translator.keras  the translator to use
{folder}/best.keras        the epoch with the {best}
{folder}/last.keras        the last epoch, to train further
{folder}/{logs}

Next:
  keras-vanilla translate {folder}/translator.keras {example_of(about)}
  keras-vanilla export {folder}/translator.keras {exported}"""
    )
