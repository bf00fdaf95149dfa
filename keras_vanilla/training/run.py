"""One training run, from the start or a snapshot to the final translator."""

import dataclasses
import hashlib
import itertools
import json
import warnings
from collections.abc import Collection, Sequence

import keras
import numpy as np

from keras_vanilla._about import About, short_sentences
from keras_vanilla._atomic_write import atomic_write_text
from keras_vanilla._checks import check_list, some_of
from keras_vanilla._types import PathLike
from keras_vanilla.data import ParallelCorpus, TokenCache, batches
from keras_vanilla.distribution.replicas import replicas_in_force
from keras_vanilla.models.fake_quantization import fake_quantize
from keras_vanilla.models.fit_arguments import refuse_fixed_learning_rate
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training.callbacks import (
    AverageCheckpoints,
    SaveTranslators,
    TrainingProgress,
    TranslationScore,
    early_stopping,
    logs_in,
)
from keras_vanilla.training.compilation import compile_with
from keras_vanilla.training.config import TrainingConfig
from keras_vanilla.training.freezing import frozen
from keras_vanilla.training.resume.exact_resume import ExactResume
from keras_vanilla.training.resume.identity import (
    check_changeable,
    optimizer_settings,
)
from keras_vanilla.training.run_folder import (
    BEST,
    FINAL,
    LAST,
    RESULTS,
    SHORT_WARMUP,
    RunFolder,
)
from keras_vanilla.training.schedule import (
    decay_after_short_warmup,
    transformer_optimizer,
)
from keras_vanilla.training.untrained import untrained
from keras_vanilla.translation.evaluation import score
from keras_vanilla.translation.translator import Translator


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C during training; `path` is the translator saved at that moment.

    A translator that was given to train further has changed: load it again before you
    restart the training.
    """

    def __init__(self, path: PathLike):
        super().__init__(
            f"Stopped; the translator so far is in {path}. The same training, started "
            "again, resumes from its last snapshot."
        )
        self.path = path


class TrainingRun:
    """One training run of a translator: its settings, its data and its folder.

    Args:
        config: TrainingConfig that was checked against `translator` and `tokenizer`.
        folder: open RunFolder.
        corpus: ParallelCorpus or TokenCache to train on.
        validation: ParallelCorpus to validate on, or None.
        tokenizer: Tokenizer, or None to train one on the corpus.
        translator: Translator to train further, in place, or None for a new one. With
            `quantize`, a float32 copy is trained if it has another precision.
        callbacks: additional `keras.callbacks.Callback` objects.
        optimizer: a Keras optimizer to use instead of the paper's.
        about: About or None. Description of the translator, which is added to its
            existing one.
        allow_changed: as for `ExactResume`.
    Attributes:
        step: int. The step of the snapshot to resume from; None to start anew.
    Raises:
        FileExistsError: if the folder holds a run with other settings.
        TypeError: if `callbacks` is not a list.
        ValueError: if `allow_changed` has an unknown name.
    """

    def __init__(
        self,
        config: TrainingConfig,
        folder: RunFolder,
        corpus: ParallelCorpus | TokenCache,
        validation: ParallelCorpus | None = None,
        *,
        tokenizer: Tokenizer | None = None,
        translator: Translator | None = None,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        optimizer: keras.optimizers.Optimizer | None = None,
        about: About | None = None,
        allow_changed: Collection[str] = (),
    ):
        self.callbacks = check_list("callbacks", callbacks, "Keras callbacks")
        self.allow_changed = check_changeable(allow_changed)
        if translator is not None and config.quantize is not None:
            translator = translator.in_float32()  # the precision of the files
        is_open = config.recipe == "auto" and config.warmup_steps is None
        self.config = config.resolve(len(corpus), translator and translator.model)
        has_warmup = self.config.warmup_steps is not None and optimizer is None
        self._may_shorten_warmup = is_open and has_warmup
        self._has_fixed_warmup = has_warmup and not is_open
        self._decay_from = None
        self.folder, self.corpus, self.validation = folder, corpus, validation
        self.tokenizer, self.translator = tokenizer, translator
        self.optimizer, self.about = optimizer, about or About()
        self._settings = self._settings_of_result()
        self.step = folder.step_to_resume(self._settings, self.allow_changed)

    @property
    def description(self) -> str:
        """A readable summary of the settings, without the number of steps."""
        note = " (the warm-up takes at most a fifth of all steps)"
        return f"{self.config}{note if self._may_shorten_warmup else ''}"

    def train(self) -> Translator:
        """Trains from the start or the last snapshot; returns the final translator.

        There is a warning if the warm-up is longer than the run.

        Raises:
            ValueError: if no pairs remain for training or validation, or a callback
                sets a learning rate that follows a schedule.
            Diverged: if the loss is not a number.
            Interrupted: on Ctrl-C, after `last.keras` is written.
        """
        self.translator = self._start()
        self._make_batches()
        self._set_warmup()
        self.translator = self.translator.replace(about=self._about())
        with frozen(self.translator.model, self.config.freeze):
            try:
                self._compile()
                if self.step is None:
                    self.folder.begin(self._settings, self.translator)
                chosen = self._fit()
            finally:
                fake_quantize(self.translator.model, None)
        self.folder.finish()
        return chosen

    def _compile(self):
        config, model = self.config, self.translator.model
        optimizer, steps_per_epoch = self.optimizer, self.batches.steps_per_epoch
        if optimizer is None:
            optimizer = transformer_optimizer(
                model.d_model,
                config.warmup_steps,
                config.clip_norm,
                config.weight_decay,
                config.learning_rate,
                total_steps=config.epochs * steps_per_epoch,
                cooldown_steps=config.cooldown_epochs * steps_per_epoch,
                decay_from=self._decay_from,
            )
        compile_with(model, optimizer, config)
        refuse_fixed_learning_rate(self.callbacks, optimizer)

    def _set_warmup(self):
        """Shortens the recipe's warm-up in a short run; warns about any other.

        A resumed run keeps its warm-up, even if it has more epochs.
        """
        config, steps = self.config, self.config.warmup_steps
        total_steps = config.epochs * self.batches.steps_per_epoch
        if self._may_shorten_warmup:
            if self.step is not None:
                begun = self.folder.settings().get(SHORT_WARMUP, steps)
                short = dataclasses.replace(config, warmup_steps=begun)
            else:
                short = config.with_short_warmup(total_steps)
            if short.warmup_steps < steps:
                self._settings[SHORT_WARMUP] = short.warmup_steps
                self.config = short
                self._decay_from = decay_after_short_warmup(
                    self.translator.model.d_model, steps, short.warmup_steps
                )
        elif self._has_fixed_warmup and steps > total_steps:
            warnings.warn(
                f"The warm-up of {steps:,} steps is longer than the training, of "
                f"{total_steps:,} steps: its highest learning rate is never reached.",
                stacklevel=2,
            )

    def _settings_of_result(self):
        """Everything that determines the result, for the folder's record."""
        settings = {**self.config.to_dict(), "corpus": self.corpus.digest}
        if self.validation is not None:
            settings["validation"] = self.validation.digest
        if self.tokenizer is not None:
            settings["tokenizer"] = self.tokenizer.digest
        if self.translator is not None:
            settings["translator"] = _digest(self.translator)
        if self.optimizer is not None:
            settings["optimizer"] = optimizer_settings(self.optimizer)
        return settings

    def _start(self):
        """The translator to train: the one given, or a new one.

        `fit` restores the weights of the last snapshot.
        """
        if self.translator is not None:
            _seed_dropout(self.translator.model, self.config.seed)
            return self.translator
        tokenizer = self.tokenizer or self.folder.tokenizer()
        return untrained(self.config, self.corpus, tokenizer)

    def _about(self):
        """The description of the translator, with examples if there are any."""
        about = self.translator.about.updated(self.about)
        if about.examples is None and self.validation is not None:
            sentences = short_sentences(self.validation.sources)
            about = dataclasses.replace(about, examples=sentences)
        return about

    def _make_batches(self):
        config, tokenizer = self.config, self.translator.tokenizer
        sizes = {
            "tokens_per_batch": config.tokens_per_batch,
            "max_tokens": config.max_tokens,
        }
        self.batches = batches(
            self.corpus,
            tokenizer,
            seed=config.seed,
            max_length_ratio=config.max_length_ratio,
            drop_duplicates=config.drop_duplicates,
            sampling=config.sampling,
            noise=config.robust,
            **sizes,
        )
        self.validation_batches = None
        if self.validation is not None:
            self._make_validation_batches(sizes)

    def _make_validation_batches(self, sizes):
        """Creates validation batches; pairs left out of them are not translated."""
        tokenizer, validation = self.translator.tokenizer, self.validation
        self.validation_batches = batches(validation, tokenizer, shuffle=False, **sizes)
        left_out = self.validation_batches.report.values()
        self.validation = validation.without(itertools.chain(*left_out))
        if shared := self.validation_batches.shared_sources(self.batches):
            warnings.warn(
                f"{validation.origin}: {len(shared)} of {len(validation)} pairs have a "
                "source sentence that the training text has too, and make the scores "
                f"look better than they are: lines {some_of(shared)}.",
                stacklevel=2,
            )

    def _fit(self):
        config, output = self.config, self.folder.output
        average = AverageCheckpoints(config.average_last)
        save = SaveTranslators(
            self.translator,
            output / LAST,
            output / BEST,
            by_chrf=config.quantize is not None,
        )
        scores = []  # before the callbacks that read `val_bleu`
        if self.validation is not None:
            tokenizer = self.translator.tokenizer
            scores = [TranslationScore(self.validation, tokenizer)]
        progress = TrainingProgress(self.batches.tokens_per_epoch)
        # Recorded after the settings were compared with the snapshots.
        record = keras.callbacks.LambdaCallback(
            on_train_begin=lambda logs: self.folder.record(self._settings)
        )
        allowed = self.allow_changed
        if config.cooldown_epochs and "epochs" in allowed:
            allowed |= {"optimizer"}  # its schedule has another end
        resume = ExactResume(
            self.folder.snapshots.folder,
            [
                record,
                *scores,
                average,
                save,
                *early_stopping(config, has_validation=bool(scores)),
                *self.callbacks,
                *logs_in(output),
                progress,
            ],
            allow_changed=allowed,
        )
        keras.utils.set_random_seed(config.seed)
        try:
            history = resume.fit(
                self.translator.model,
                self.batches,
                epochs=config.epochs,
                validation_data=self.validation_batches,
                verbose=0,
            ).history
            return self._choose(average.weights(), save.best_epoch, history)
        except KeyboardInterrupt:
            raise self._interrupted() from None
        finally:
            progress.close()

    def _choose(self, average_weights, best_epoch, history):
        """Saves the better of the average and the best epoch, and both scores."""
        chosen = self.translator.copy(average_weights)
        results = {"chosen": "average", "best_epoch": best_epoch}
        if self.validation is not None:
            average, metric = self._score(chosen), self._metric
            for name in dict.fromkeys(["bleu", metric]):
                results[f"average_val_{name}"] = getattr(average, name)
                results[f"best_val_{name}"] = history[f"val_{name}"][best_epoch - 1]
            if results[f"best_val_{metric}"] > results[f"average_val_{metric}"]:
                best = self.folder.load(BEST)
                if best:  # may be saved by an earlier process, with another `about`
                    results["chosen"] = "best"
                    chosen = best.replace(about=self.translator.about)
        chosen.save(self.folder.output / FINAL)
        results["config"] = self.config.to_dict()
        text = json.dumps(results, indent=2) + "\n"
        atomic_write_text(self.folder.output / RESULTS, text)
        return chosen

    @property
    def _metric(self):
        """The validation metric by which the best translator is chosen."""
        return "chrf" if self.config.quantize else "bleu"

    def _score(self, translator):
        fake_quantize(translator.model, self.config.quantize)
        result = score(translator, self.validation)
        fake_quantize(translator.model, None)
        return result

    def _interrupted(self):
        """The error to raise after Ctrl-C, once the translator is saved."""
        if replicas_in_force().in_other_processes:  # these would have to save too
            return KeyboardInterrupt(
                "Stopped. Stop the other processes too; started again together, they "
                "resume from the last snapshot."
            )
        self.translator.save(self.folder.output / LAST)
        return Interrupted(self.folder.output / LAST)


def _seed_dropout(model, seed):
    """Seeds dropout, because Keras gives a loaded model another seed."""
    weights = {id(weight) for weight in model.weights}
    random = np.random.default_rng(seed)
    for variable in model.variables:
        if id(variable) not in weights:  # the state of a `SeedGenerator`
            variable.assign([random.integers(2**31), 0])


def _digest(translator):
    """SHA-256 of a translator's configuration, pieces and weights."""
    config = translator.model.get_config()
    del config["name"]  # Keras numbers the models of a process
    digest = hashlib.sha256(json.dumps(config).encode())
    digest.update(translator.tokenizer.digest.encode())
    for value in translator.model.get_weights():
        digest.update(keras.ops.convert_to_numpy(value).tobytes())
    return digest.hexdigest()
