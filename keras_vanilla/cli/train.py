"""`keras-vanilla train`."""

import argparse

from keras_vanilla.cli.console import add_command, say
from keras_vanilla.cli.corpora import (
    TrainingInput,
    add_cache_option,
    add_corpus_options,
    add_validation_options,
)


def add_to(commands: argparse._SubParsersAction) -> None:
    """Adds the command."""
    command = add_command(commands, "train", run, "train a translator on parallel text")
    add_corpus_options(command, shards=True)
    add_cache_option(command)
    add_validation_options(command)
    _add_output(command)
    _add_model(command)
    _add_numbers(command)
    _add_devices(command)


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


def _add_model(command):
    add = command.add_argument
    add("--preset", help="tiny, small, base or big (small)")
    add("--from", dest="start", metavar="MODEL", help="train this .keras file further")
    add(
        "--tokenizer",
        nargs="+",
        metavar="FILE",
        help="your SentencePiece .model: one for both languages, or two",
    )
    add("--vocabulary-size", type=int, metavar="N", help="pieces; else by the corpus")
    add(
        "--separate-vocabularies",
        action="store_true",
        help="one for each language",
    )
    add(
        "--precision",
        dest="dtype",
        choices=["float32", "mixed_bfloat16"],
        help="float32",
    )


def _add_numbers(command):
    add = command.add_argument
    add(
        "--recipe",
        default="auto",
        metavar="auto|paper",
        help="auto, by the size of the corpus; the next four options override it",
    )
    add("--epochs", type=int, metavar="N")
    add("--tokens-per-batch", type=int, metavar="N", help="padding included")
    add("--warmup-steps", type=int, metavar="N", help="to the highest learning rate")
    add("--dropout", type=float, metavar="P")
    add(
        "--max-tokens",
        type=int,
        default=256,
        metavar="N",
        help="leave longer pairs out (%(default)s)",
    )
    add("--seed", type=int, default=0, help="%(default)s")


def _add_devices(command):
    add = command.add_argument
    add(
        "--strategy",
        default="auto",
        metavar="S",
        help="auto, single, mirrored (several GPUs), multi-worker, tpu; on JAX "
        "also model-parallel",
    )
    add(
        "--micro-batches",
        type=int,
        default=1,
        metavar="N",
        help="train on each batch in N parts, for less memory",
    )


def run(options: argparse.Namespace) -> None:
    """Runs the command."""
    from keras_vanilla.distribution.strategies import strategy
    from keras_vanilla.training.config import TrainingConfig
    from keras_vanilla.training.run_folder import RunFolder

    names = [name for name in TrainingConfig.names() if hasattr(options, name)]
    config = TrainingConfig(**{name: getattr(options, name) for name in names})
    given = TrainingInput(options)
    folder = RunFolder(options.output, options.overwrite)
    with strategy(options.strategy), folder:
        given.read(config, folder)
        _train(config, folder, given)


def _train(config, folder, given):
    from keras_vanilla.training.run import TrainingRun

    run = TrainingRun(
        config,
        folder,
        given.corpus,
        given.validation,
        tokenizer=given.tokenizer,
        translator=given.translator,
    )
    say(f"{len(given.corpus):,} pairs: {run.config}")
    step = None if folder.overwrite else folder.snapshots.last_step()
    if step is not None:
        say(f"{folder.path} has a snapshot after step {step:,} to resume from")
    run.train()
    if folder.is_writer:
        print(folder.results_path.read_text(), end="")
        _print_next_steps(folder.path, "validation" if given.validation else "training")


def _print_next_steps(folder, measured_on):
    print(
        f"""
{folder}/translator.keras  the translator to use
{folder}/best.keras        the epoch with the lowest {measured_on} cross-entropy
{folder}/last.keras        the last epoch, to train further
{folder}/logs              for TensorBoard; history.csv has the same numbers

Next:
  keras-vanilla translate {folder}/translator.keras "..."
  keras-vanilla export {folder}/translator.keras {folder}/translator.tflite"""
    )
