"""`keras-vanilla train`."""

import shlex
from pathlib import Path

from keras_vanilla.cli.console import add_command, refuse_existing, say
from keras_vanilla.cli.corpora import (
    add_corpus_options,
    read_corpus,
    read_files,
    read_public_validation,
)

# What can be said of a training, as `train_translator` names it.
MODEL = ("preset", "vocabulary_size", "separate_vocabularies", "dropout")
RECIPE = ("epochs", "tokens_per_batch", "warmup_steps")


def add_to(commands):
    """Adds the command."""
    command = add_command(commands, "train", run, "train a translator on parallel text")
    add_corpus_options(command)
    _add_files(command)
    _add_model(command)
    _add_recipe(command)


def _add_files(command):
    add = command.add_argument
    add("--valid-source", metavar="FILE", help="sentences to validate on")
    add("--valid-target", metavar="FILE", help="their translations")
    add("--output", required=True, metavar="DIR", help="a folder that is not there yet")
    add("--overwrite", action="store_true", help="write into a folder that exists")


def _add_model(command):
    add = command.add_argument
    add("--preset", help="tiny, small, base or big (small)")
    add("--from", dest="start", metavar="MODEL", help="train on from this .keras file")
    add(
        "--tokenizer",
        nargs="+",
        metavar="FILE",
        help="your SentencePiece .model: one for both languages, or two",
    )
    add("--vocabulary-size", type=int, metavar="N", help="pieces; else by the corpus")
    add(
        "--separate-vocabularies",
        action="store_const",
        const=True,
        help="one for each language",
    )
    add("--precision", choices=["float32", "mixed_bfloat16"], help="float32")


def _add_recipe(command):
    add = command.add_argument
    add(
        "--recipe",
        default="auto",
        metavar="auto|paper",
        help="auto, by the size of the corpus, which the next four change",
    )
    add("--epochs", type=int, metavar="N")
    add("--tokens-per-batch", type=int, metavar="N", help="padding counted")
    add("--warmup-steps", type=int, metavar="N", help="to the highest learning rate")
    add("--dropout", type=float, metavar="P")
    add(
        "--max-tokens",
        type=int,
        default=256,
        metavar="N",
        help="leave longer pairs out",
    )
    add("--seed", type=int, default=0, help="%(default)s")


def run(options):
    """Runs the command."""
    from keras_vanilla.training.fit import Interrupted, train_translator
    from keras_vanilla.training.recipe import recipe_for
    from keras_vanilla.transformer import check_preset

    refuse_existing(options.output, options.overwrite)
    if (options.valid_source is None) != (options.valid_target is None):
        raise ValueError("--valid-source and --valid-target go together.")
    # What costs nothing to find wrong comes before a corpus is read.
    chosen = {name: getattr(options, name) for name in RECIPE}
    recipe_for(1, options.recipe).with_choices(**chosen, dropout=options.dropout)
    check_preset(options.preset or "small")
    start, tokenizer = _start(options), _tokenizer(options.tokenizer)
    corpus = read_corpus(options, options.target, "train")
    valid = _validation(options)
    recipe = recipe_for(len(corpus), options.recipe).with_choices(**chosen)
    dropout = start.model.dropout if start else options.dropout
    say(f"{len(corpus):,} pairs: {recipe.with_choices(dropout=dropout)}")
    try:
        train_translator(
            corpus,
            options.output,
            valid,
            recipe=recipe,
            translator=start,
            tokenizer=tokenizer,
            dtype=options.precision,
            max_tokens=options.max_tokens,
            seed=options.seed,
            overwrite=options.overwrite,
            **{name: getattr(options, name) for name in MODEL},
        )
    except Interrupted as stop:
        raise KeyboardInterrupt(f"{stop}\n{_train_on(options, stop.path)}") from None
    print((Path(options.output) / "results.json").read_text(), end="")
    _say_what_is_next(Path(options.output), "validation" if valid else "training")


def _validation(options):
    if options.valid_source:
        return read_files(options.valid_source, options.valid_target)
    if options.corpus:
        return read_public_validation(options.corpus, options.reverse)
    return None


def _start(options):
    from keras_vanilla.translator import Translator

    return Translator.load(options.start) if options.start else None


def _tokenizer(files):
    from keras_vanilla.text import Tokenizer

    if files is None:
        return None
    if len(files) > 2:
        raise ValueError(
            f"--tokenizer takes one file or two. Received: {len(files)} files"
        )
    return Tokenizer.from_files(*files)


def _train_on(options, path):
    """The command that trains on from a translator that was saved by Ctrl-C."""
    words = []
    names = ("source", "target", "corpus", "valid_source", "valid_target", "recipe")
    for name in (*names, *RECIPE, "max_tokens", "seed"):
        if (value := getattr(options, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--reverse"] if options.reverse else []
    words += ["--output", f"{Path(options.output)}-2", "--from", str(path)]
    command = f"keras-vanilla train {shlex.join(words)}"
    return f"To train on from it, with a new warm-up:\n  {command}"


def _say_what_is_next(folder, measured_on):
    print(
        f"""
{folder}/translator.keras  the translator to use
{folder}/best.keras        the epoch with the lowest {measured_on} cross-entropy
{folder}/last.keras        the last epoch, to train on from
{folder}/logs              for TensorBoard; history.csv has the same numbers

Next:
  keras-vanilla translate {folder}/translator.keras "..."
  keras-vanilla export {folder}/translator.keras {folder}/translator.tflite"""
    )
