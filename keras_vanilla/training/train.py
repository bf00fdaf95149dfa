"""From parallel text to a saved translator."""

import dataclasses
import itertools

import keras

from keras_vanilla.models.transformer import Transformer, check_preset
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training.config import recipe_for
from keras_vanilla.training.run import TrainingRun
from keras_vanilla.training.run_folder import RunRecord, digest_of
from keras_vanilla.translation.translator import Translator


def new_translator(
    corpus,
    preset="small",
    tokenizer=None,
    vocabulary_size=None,
    separate_vocabularies=False,
    recipe="auto",
    dtype=None,
    seed=0,
    **overrides,
):
    """An untrained translator for a corpus.

    Args:
        corpus: ParallelCorpus to train a tokenizer on.
        preset: name of the Transformer's size.
        tokenizer: Tokenizer, or None to train one on both sides of the corpus.
        vocabulary_size: int, of the tokenizer to train; None chooses it by the corpus.
        separate_vocabularies: bool. A vocabulary for each language, not one for both.
        recipe: "auto", "paper" or a Recipe, for the dropout.
        dtype: precision policy, for example "mixed_bfloat16".
        seed: int. Of the initial weights.
        overrides: arguments of `Transformer` that replace the preset's.
    Raises:
        ValueError: if the preset or an argument of the Transformer is not valid, or a
            tokenizer is given together with how to train one.
    """
    check_preset(preset)  # before a tokenizer is trained for nothing
    if tokenizer is None:
        tokenizer = _new_tokenizer(corpus, vocabulary_size, separate_vocabularies, seed)
    elif vocabulary_size is not None or separate_vocabularies:
        raise ValueError(
            "A tokenizer has its own vocabularies: give it, or `vocabulary_size` and "
            "`separate_vocabularies`, not both."
        )
    keras.utils.set_random_seed(seed)
    chosen = {
        "source_vocabulary_size": tokenizer.vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
        "share_embeddings": tokenizer.source_model == tokenizer.target_model,
        "pad_id": tokenizer.pad_id,
        "start_id": tokenizer.start_id,
        "end_id": tokenizer.end_id,
    }
    if (dropout := _recipe(recipe, corpus).dropout) is not None:
        chosen["dropout"] = dropout
    model = Transformer.from_preset(preset, dtype=dtype, **{**chosen, **overrides})
    return Translator(tokenizer, model)


def _new_tokenizer(corpus, vocabulary_size, separate, seed):
    del seed
    settings = {"vocabulary_size": vocabulary_size}
    if not hasattr(corpus, "sources"):
        raise ValueError(f"{corpus.origin}: a TokenCache needs its tokenizer.")
    if separate:
        return Tokenizer.train_separate(corpus.sources, corpus.targets, **settings)
    lines = itertools.chain(corpus.sources, corpus.targets)
    return Tokenizer.train(lines=lines, **settings)


def _recipe(recipe, corpus):
    return recipe_for(len(corpus), recipe) if isinstance(recipe, str) else recipe


def train_translator(
    corpus,
    output,
    valid=None,
    preset=None,
    tokenizer=None,
    epochs=None,
    tokens_per_batch=None,
    seed=0,
    translator=None,
    recipe="auto",
    vocabulary_size=None,
    separate_vocabularies=None,
    dropout=None,
    warmup_steps=None,
    label_smoothing=None,
    max_tokens=256,
    average=5,
    dtype=None,
    micro_batches=1,
    overwrite=False,
    asked=None,
):
    """Trains a translator on a corpus and saves it.

    A training that was killed, and is called again with the same arguments, goes on
    from its last snapshot and ends as if nothing had happened.

    Writes into `output`: `translator.keras`, the one to use; `best.keras`, the epoch
    with the lowest cross-entropy on `valid`, or without it on the corpus; `last.keras`;
    `results.json`; `history.csv` and TensorBoard's `logs/`; `run.json`, what was asked
    for; and, until it is finished, `snapshots/`.

    Args:
        corpus: ParallelCorpus or TokenCache to train on.
        output: path of a folder that does not exist yet, or holds this very training,
            unfinished.
        valid: ParallelCorpus to validate on, or None.
        preset: name of the Transformer's size; None means "small".
        tokenizer: Tokenizer, or None to train one on the corpus; that of the cache.
        epochs: int. This and every other number below that is None comes from the
            recipe.
        tokens_per_batch: int. Padded target positions of one batch.
        seed: int. Of initial weights, order and dropout.
        translator: Translator to train on from, in place; it has its own size,
            tokenizer, dropout and precision.
        recipe: "auto" for one by the size of the corpus, "paper", or a Recipe; see
            `recipe_for`.
        vocabulary_size: int, of the tokenizer to train; None chooses it by the corpus.
        separate_vocabularies: bool. A vocabulary for each language, not one for both.
        dropout: float.
        warmup_steps: int. Steps until the highest learning rate.
        label_smoothing: float.
        max_tokens: int. Longer pairs are left out and reported.
        average: int. Number of last epochs whose weights are averaged.
        dtype: precision policy, for example "mixed_bfloat16".
        micro_batches: int. Parts of a batch to go through one after the other, for
            less memory.
        overwrite: bool. Begin in a folder with something else in it.
        asked: dict of what else decides the result, such as how `tokenizer` was
            trained: with other values a training does not go on.
    Returns:
        The Translator of `translator.keras`: the average of the last epochs or the best
        epoch, whichever has the higher BLEU on `valid`; without `valid`, the average.
    Raises:
        FileExistsError: if `output` holds anything else, a finished training or one
            with other arguments, and `overwrite` is False.
        ValueError: if an argument is out of range or does not go with `translator`, no
            pair is left to train on, or `valid` has a text longer than the model takes.
        Diverged: if the loss is not a number.
        Interrupted: on Ctrl-C, after `last.keras` is written.
    Source: Vaswani et al. 2017, sections 5 and 6.1.
    """
    record = RunRecord(output)
    record.refuse_finished(overwrite)
    recipe = _recipe(recipe, corpus).with_choices(
        epochs=epochs,
        tokens_per_batch=tokens_per_batch,
        warmup_steps=warmup_steps,
        label_smoothing=label_smoothing,
    )
    said = {
        "preset": preset,
        "tokenizer": tokenizer,
        "vocabulary_size": vocabulary_size,
        "separate_vocabularies": separate_vocabularies,
        "dropout": dropout,
        "dtype": dtype,
    }
    said = {name: value for name, value in said.items() if value is not None}
    numbers = {
        "seed": seed,
        "max_tokens": max_tokens,
        "average": average,
        "micro_batches": micro_batches,
    }
    asked = numbers | _asked(recipe, said, corpus, valid, translator) | (asked or {})
    if goes_on := record.goes_on(asked, overwrite):
        translator = translator or Translator.load(record.folder / "last.keras")
    else:
        translator = _start(corpus, translator, recipe, said, seed)
    run = TrainingRun(translator, recipe, corpus, valid, **numbers)
    return run.into(record, None if goes_on else asked)


def _asked(recipe, said, corpus, valid, translator):
    """What decides the result of a training, as its record has it."""
    asked = dataclasses.asdict(recipe) | said
    if "tokenizer" in said:
        asked["tokenizer"] = said["tokenizer"].digest
    if translator is not None:
        asked["translator"] = digest_of(translator)
    if valid is not None:
        asked["valid"] = valid.digest
    return asked | {"corpus": corpus.digest}


def _start(corpus, translator, recipe, said, seed):
    """The translator to train: a new one, as it was said to be, or the one given."""
    if translator is None:
        return new_translator(corpus, recipe=recipe, seed=seed, **said)
    if said:
        raise ValueError(
            f"A translator to train on from has its own {', '.join(said)}: received "
            "both."
        )
    return translator
