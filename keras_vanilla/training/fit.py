"""From parallel text to a saved translator."""

import dataclasses
import itertools
import json
from pathlib import Path

import keras

from keras_vanilla.evaluation import score
from keras_vanilla.text import Tokenizer, batches
from keras_vanilla.training.checkpoints import AverageCheckpoints, KeepTranslators
from keras_vanilla.training.loss import SmoothedCrossentropy
from keras_vanilla.training.metrics import TokenAccuracy, TokenCrossentropy
from keras_vanilla.training.recipe import recipe_for
from keras_vanilla.training.schedule import adam
from keras_vanilla.training.validation import Progress, TranslationScore
from keras_vanilla.transformer import Transformer, check_preset
from keras_vanilla.translator import Translator


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training; `path` is the translator saved at that moment."""

    def __init__(self, path):
        super().__init__(f"Stopped; the translator so far is in {path}.")
        self.path = path


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
    settings = {"vocabulary_size": vocabulary_size, "seed": seed}
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
    overwrite=False,
):
    """Trains a translator on a corpus and saves it.

    Writes into `output`: `translator.keras`, the one to use; `best.keras`, the epoch
    with the lowest cross-entropy on `valid`, or without it on the corpus; `last.keras`;
    `results.json`; `history.csv` and TensorBoard's `logs/`.

    Args:
        corpus: ParallelCorpus to train on.
        output: path of a folder that does not exist yet.
        valid: ParallelCorpus to validate on, or None.
        preset: name of the Transformer's size; None means "small".
        tokenizer: Tokenizer, or None to train one on the corpus.
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
        overwrite: bool. Write into a folder that exists.
    Returns:
        The Translator of `translator.keras`: the average of the last epochs or the best
        epoch, whichever has the higher BLEU on `valid`; without `valid`, the average.
    Raises:
        FileExistsError: if `output` exists and `overwrite` is False.
        ValueError: if an argument is out of range or does not go with `translator`, no
            pair is left to train on, `valid` has a text longer than the model takes, or
            the loss is not a number in any epoch.
        Interrupted: on Ctrl-C, after `last.keras` is written.
    Source: Vaswani et al. 2017, sections 5 and 6.1.
    """
    folder = Path(output)
    if folder.exists() and not overwrite:
        raise FileExistsError(f"{folder} exists already.")
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
    translator = _start(corpus, translator, recipe, said, seed)
    run = _TrainingRun(translator, recipe, corpus, valid, max_tokens, average, seed)
    return run.into(folder)


class _TrainingRun:
    """One training: its translator, recipe and data."""

    def __init__(self, translator, recipe, corpus, valid, max_tokens, average, seed):
        _check_lengths(translator, valid, max_tokens)
        data = {"tokens_per_batch": recipe.tokens_per_batch, "max_tokens": max_tokens}
        tokenizer = translator.tokenizer
        self.translator, self.recipe = translator, recipe
        self.valid, self.seed = valid, seed
        self.train = batches(corpus, tokenizer, seed=seed, **data)
        self.validation = valid and batches(valid, tokenizer, shuffle=False, **data)
        self.averaging = AverageCheckpoints(last=average)
        compile_for_training(
            translator.model, recipe.warmup_steps, recipe.label_smoothing
        )

    def into(self, folder):
        """Trains, saves into `folder`, and returns the translator to use."""
        folder.mkdir(parents=True, exist_ok=True)
        keep = KeepTranslators(self.translator, folder)
        keras.utils.set_random_seed(self.seed)
        try:
            history = self.translator.model.fit(
                self.train,
                steps_per_epoch=self.train.steps_per_epoch,
                epochs=self.recipe.epochs,
                validation_data=self.validation,
                shuffle=False,  # `batches` has shuffled
                callbacks=self._callbacks(folder, keep),
                verbose=0,
            ).history
            return self._choose(keep, history, folder)
        except KeyboardInterrupt:
            self.translator.save(keep.last_path)
            raise Interrupted(keep.last_path) from None

    def _callbacks(self, folder, keep):
        scored = []
        if self.valid is not None:  # before the callbacks that read its `val_bleu`
            scored = [TranslationScore(self.valid, self.translator.tokenizer)]
        return [
            *scored,
            self.averaging,
            keep,
            keras.callbacks.CSVLogger(str(folder / "history.csv")),
            keras.callbacks.TensorBoard(str(folder / "logs"), write_graph=False),
            Progress(self.train.tokens_per_epoch),
        ]

    def _choose(self, keep, history, folder):
        """Saves the better of the average and the best epoch, and what each scored."""
        if keep.best_epoch is None:
            raise ValueError(
                "The training diverged: the loss was not a number in any epoch. More "
                "warm-up steps lower the learning rate."
            )
        chosen = self.translator.copy(self.averaging.weights())
        results = {"chosen": "average", "best_epoch": keep.best_epoch}
        if self.valid is not None:
            results["average_val_bleu"] = score(chosen, self.valid)["bleu"]
            results["best_val_bleu"] = history["val_bleu"][keep.best_epoch - 1]
            if results["best_val_bleu"] > results["average_val_bleu"]:
                results["chosen"] = "best"
                chosen = Translator.load(keep.best_path)
        chosen.save(folder / "translator.keras")
        results["recipe"] = dataclasses.asdict(self.recipe)
        results["recipe"]["dropout"] = self.translator.model.dropout
        (folder / "results.json").write_text(json.dumps(results, indent=2) + "\n")
        return chosen


def _start(corpus, translator, recipe, said, seed):
    """The translator to train: a new one, as it was said to be, or the one given."""
    said = {name: value for name, value in said.items() if value is not None}
    if translator is None:
        return new_translator(corpus, recipe=recipe, seed=seed, **said)
    if said:
        raise ValueError(
            f"A translator to train on from has its own {', '.join(said)}: received "
            "both."
        )
    return translator


def _check_lengths(translator, valid, max_tokens):
    """Finds before training what would stop it after an epoch, or be of no use."""
    longest = translator.model.max_length
    if max_tokens > longest:
        raise ValueError(
            f"`max_tokens` must be at most the model's `max_length`, {longest}. "
            f"Received: {max_tokens}"
        )
    if valid is not None:
        try:
            translator.encode(list(valid.sources))
        except ValueError as error:
            raise ValueError(f"{valid.origin}: {error}") from None


def compile_for_training(model, warmup_steps=4000, label_smoothing=0.1):
    """Compiles a Transformer with the paper's optimizer, loss, and true metrics.

    Args:
        model: Transformer.
        warmup_steps: int. Steps until the highest learning rate.
        label_smoothing: float.
    """
    model.compile(
        optimizer=adam(model.d_model, warmup_steps),
        loss=SmoothedCrossentropy(label_smoothing),
        metrics=[
            TokenCrossentropy(pad_id=model.pad_id),
            TokenAccuracy(pad_id=model.pad_id),
        ],
        # XLA would compile each shape of a batch, and drop the check of the weights.
        jit_compile=False if keras.backend.backend() == "tensorflow" else "auto",
    )
    # TensorFlow traces a step again when variables are made inside it.
    model.optimizer.build(model.trainable_variables)
