"""One training, from its first step or its last snapshot to the translator to use."""

import dataclasses
import json
import tempfile
from pathlib import Path

import keras

from keras_vanilla._atomic_write import atomic_write_text
from keras_vanilla.data import batches
from keras_vanilla.distribution.replicas import replicas_in_force
from keras_vanilla.distribution.strategies import shapes_here
from keras_vanilla.training.callbacks import AverageCheckpoints, KeepTranslators
from keras_vanilla.training.loss import SmoothedCrossentropy
from keras_vanilla.training.metrics import TokenAccuracy, TokenCrossentropy
from keras_vanilla.training.resume.exact_resume import ExactResume
from keras_vanilla.training.resume.snapshots import sync
from keras_vanilla.training.schedule import adam
from keras_vanilla.training.validation import Progress, TranslationScore
from keras_vanilla.translation.evaluation import score
from keras_vanilla.translation.translator import Translator


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training; `path` is the translator saved at that moment.

    A translator that was given to train on from has changed: to go on, load it again.
    """

    def __init__(self, path):
        super().__init__(
            f"Stopped; the translator so far is in {path}. The same training, started "
            "again, goes on from its last snapshot."
        )
        self.path = path


class TrainingRun:
    """One training of a translator into a folder: its model, recipe and data.

    Args:
        translator: Translator to train, in place.
        recipe: Recipe.
        corpus: ParallelCorpus to train on.
        valid: ParallelCorpus to validate on, or None.
        max_tokens: int. Longer pairs are left out.
        average: int. Number of last epochs whose weights are averaged.
        seed: int. Of order and dropout.
        micro_batches: int. Parts of a batch to go through one after the other.
    Raises:
        ValueError: if a length does not go with the model, or no pair is left.
    """

    def __init__(
        self,
        translator,
        recipe,
        corpus,
        valid,
        max_tokens,
        average,
        seed,
        micro_batches,
    ):
        _check_lengths(translator, valid, max_tokens)
        data = {
            "tokens_per_batch": recipe.tokens_per_batch,
            "max_tokens": max_tokens,
            **shapes_here(max_tokens),
        }
        tokenizer = translator.tokenizer
        self.translator, self.recipe = translator, recipe
        self.valid, self.seed = valid, seed
        self.train = batches(corpus, tokenizer, seed=seed, **data)
        self.validation = valid and batches(valid, tokenizer, shuffle=False, **data)
        self.averaging = AverageCheckpoints(last=average)
        compile_for_training(
            translator.model, recipe.warmup_steps, recipe.label_smoothing, micro_batches
        )

    def into(self, record, asked=None):
        """Trains, and returns the translator to use.

        Of several processes the first writes into the record's folder; the others do
        the same in one that is thrown away, since what they do is done by all or hangs.

        Args:
            record: RunRecord.
            asked: dict, what to begin; None goes on from the last snapshot.
        """
        if replicas_in_force().first:
            with tempfile.TemporaryDirectory() as scratch:
                return self._into(Path(scratch), record, asked is not None)
        if asked is not None:
            record.begin(asked)
        chosen = self._into(record.folder, record, asked is not None)
        record.finish()
        return chosen

    def _into(self, folder, record, begins):
        keep = KeepTranslators(self.translator, folder)
        if begins:
            self.translator.save(keep.last_path)  # to load it from, to go on
            sync(keep.last_path)
        callbacks = self._callbacks(folder, keep)
        keras.utils.set_random_seed(self.seed)
        try:
            history = self.translator.model.fit(
                self.train,
                steps_per_epoch=self.train.steps_per_epoch,
                epochs=self.recipe.epochs,
                validation_data=self.validation,
                shuffle=False,  # `batches` has shuffled
                callbacks=[ExactResume(record.snapshots.folder, self.train, callbacks)],
                verbose=0,
            ).history
            return self._choose(keep, history, folder, record)
        except KeyboardInterrupt:
            if replicas_in_force().in_other_processes:  # they would have to save too
                raise KeyboardInterrupt(
                    "Stopped. Stop the other processes too; started again together, "
                    "they go on from the last snapshot."
                ) from None
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

    def _choose(self, keep, history, folder, record):
        """Saves the better of the average and the best epoch, and what each scored."""
        chosen = self.translator.copy(self.averaging.weights())
        results = {"chosen": "average", "best_epoch": keep.best_epoch}
        if self.valid is not None:
            results["average_val_bleu"] = score(chosen, self.valid)["bleu"]
            results["best_val_bleu"] = history["val_bleu"][keep.best_epoch - 1]
            if results["best_val_bleu"] > results["average_val_bleu"]:
                results["chosen"] = "best"
                there = keep.best_path.exists()  # or an earlier process saved it
                chosen = Translator.load(
                    keep.best_path if there else record.folder / "best.keras"
                )
        chosen.save(folder / "translator.keras")
        results["recipe"] = dataclasses.asdict(self.recipe)
        results["recipe"]["dropout"] = self.translator.model.dropout
        atomic_write_text(folder / "results.json", json.dumps(results, indent=2) + "\n")
        return chosen


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


def compile_for_training(
    model, warmup_steps=4000, label_smoothing=0.1, micro_batches=1
):
    """Compiles a Transformer with the paper's optimizer, loss, and true metrics.

    Args:
        model: Transformer.
        warmup_steps: int. Steps until the highest learning rate.
        label_smoothing: float.
        micro_batches: int. Parts of a batch to go through one after the other, for
            less memory.
    """
    model.compile(
        optimizer=adam(model.d_model, warmup_steps),
        loss=SmoothedCrossentropy(label_smoothing, micro_batches),
        metrics=[
            TokenCrossentropy(pad_id=model.pad_id),
            TokenAccuracy(pad_id=model.pad_id),
        ],
        # XLA would compile each shape of a batch, and drop the check of the weights.
        jit_compile=False if keras.backend.backend() == "tensorflow" else "auto",
    )
    # TensorFlow traces a step again when variables are made inside it.
    model.optimizer.build(model.trainable_variables)
