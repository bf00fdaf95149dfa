"""`keras-vanilla train`."""

from pathlib import Path

from keras_vanilla.cli.console import add_command, say
from keras_vanilla.cli.corpora import (
    add_cache_option,
    add_corpus_options,
    read_cache,
    read_corpus,
    read_files,
    read_public_validation,
    train_tokenizer,
)

# What can be said of a training, as `train_translator` names it.
TOKENIZER = ("vocabulary_size", "separate_vocabularies")
MODEL = ("preset", *TOKENIZER, "dropout")
RECIPE = ("epochs", "tokens_per_batch", "warmup_steps")


def add_to(commands):
    """Adds the command."""
    command = add_command(commands, "train", run, "train a translator on parallel text")
    add_corpus_options(command, shards=True)
    add_cache_option(command)
    _add_files(command)
    _add_model(command)
    _add_recipe(command)
    _add_devices(command)


def _add_files(command):
    add = command.add_argument
    add("--valid-source", metavar="FILE", help="sentences to validate on")
    add("--valid-target", metavar="FILE", help="their translations")
    add(
        "--output",
        required=True,
        metavar="DIR",
        help="a folder that is not there yet; the same command on an unfinished "
        "training goes on with it",
    )
    add(
        "--overwrite",
        action="store_true",
        help="begin anew where another training is",
    )


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


def run(options):
    """Runs the command."""
    from keras_vanilla.distribution.strategies import strategy
    from keras_vanilla.models.transformer import check_preset
    from keras_vanilla.training.config import recipe_for
    from keras_vanilla.training.run_folder import RunRecord

    record = RunRecord(options.output)
    record.refuse_finished(options.overwrite)
    if (options.valid_source is None) != (options.valid_target is None):
        raise ValueError("--valid-source and --valid-target go together.")
    # What costs nothing to find wrong comes before a corpus is read.
    chosen = {name: getattr(options, name) for name in RECIPE}
    recipe_for(1, options.recipe).with_choices(**chosen, dropout=options.dropout)
    check_preset(options.preset or "small")
    _check_start(options)
    with strategy(options.strategy):
        _train(options, record, chosen)


def _train(options, record, chosen):
    from keras_vanilla.distribution.replicas import replicas_in_force
    from keras_vanilla.training.config import recipe_for
    from keras_vanilla.training.run import Interrupted
    from keras_vanilla.training.train import train_translator

    start, tokenizer = _start(options), _tokenizer(options.tokenizer)
    model, asked = {name: getattr(options, name) for name in MODEL}, {}
    if options.cache is None:
        corpus = read_corpus(options, options.target, "train")
    else:
        if start is None and tokenizer is None:
            tokenizer = _new_tokenizer(options, record)
            asked = {name: model.pop(name) for name in TOKENIZER}
        corpus = read_cache(options, start.tokenizer if start else tokenizer)
    valid = _validation(options)
    recipe = recipe_for(len(corpus), options.recipe).with_choices(**chosen)
    dropout = start.model.dropout if start else options.dropout
    say(f"{len(corpus):,} pairs: {recipe.with_choices(dropout=dropout)}")
    if (step := record.snapshots.last_step()) is not None:
        say(f"{options.output} has a snapshot after step {step:,}, to go on from")
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
            micro_batches=options.micro_batches,
            seed=options.seed,
            overwrite=options.overwrite,
            asked=asked,
            **model,
        )
    except Interrupted as stop:
        raise KeyboardInterrupt(str(stop)) from None
    if replicas_in_force().first:
        return  # the first process has written them, or is about to
    print((record.folder / "results.json").read_text(), end="")
    _say_what_is_next(record.folder, "validation" if valid else "training")


def _check_start(options):
    """A file that the training writes over cannot be what it starts from."""
    start, output = options.start, Path(options.output)
    changing = [output / name for name in ("last.keras", "best.keras")]
    if start and Path(start).resolve() in [path.resolve() for path in changing]:
        raise ValueError(
            f"--from {start} would be written over by this training: copy it first, or "
            "choose another --output."
        )


def _new_tokenizer(options, record):
    """A tokenizer for a cache, which there must be before; that of a run to go on."""
    from keras_vanilla.translation.translator import Translator

    if record.snapshots.paths() and not options.overwrite:
        return Translator.load(record.folder / "last.keras").tokenizer
    return train_tokenizer(options)


def _validation(options):
    if options.valid_source:
        return read_files(options.valid_source, options.valid_target)
    if options.corpus:
        return read_public_validation(options.corpus, options.reverse)
    return None


def _start(options):
    from keras_vanilla.translation.translator import Translator

    return Translator.load(options.start) if options.start else None


def _tokenizer(files):
    from keras_vanilla.tokenizer import Tokenizer

    if files is None:
        return None
    if len(files) > 2:
        raise ValueError(
            f"--tokenizer takes one file or two. Received: {len(files)} files"
        )
    return Tokenizer.from_files(*files)


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
