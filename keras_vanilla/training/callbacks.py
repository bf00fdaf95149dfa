"""Callbacks: weight averaging, saved translators, BLEU, progress."""

import collections
import importlib.util
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import keras
import numpy as np

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla._checks import check_integer
from keras_vanilla._progress import Progress
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training.resume.snapshots import SeparateArrays
from keras_vanilla.translation.evaluation import score
from keras_vanilla.translation.translator import Translator

if TYPE_CHECKING:
    from keras_vanilla.training.run import TrainingRun


class AverageCheckpoints(keras.callbacks.Callback):
    """Keeps the weights of the last epochs, to average them.

    The paper averages the last 5 checkpoints of its base models. The weights are kept
    in memory, which takes `last` times the model's size.

    Args:
        last: int. Number of epochs to average.
    Raises:
        ValueError: if `last` is below 1.
    Example:
        average = AverageCheckpoints(last=5)
        model.fit(..., callbacks=[average])
        model.set_weights(average.weights())
    Source: Vaswani et al. 2017, section 6.1.
    """

    def __init__(self, last: int = 5):
        super().__init__()
        self.last = check_integer("last", last, 1)
        self._kept = collections.deque(maxlen=self.last)

    def on_epoch_end(self, epoch, logs=None):
        self._kept.append(SeparateArrays(self.model.get_weights()))

    def get_state(self) -> dict:
        """State for `ExactResume`: the weights of the last epochs, stored once each."""
        return {"kept": list(self._kept)}

    def set_state(self, state: dict) -> None:
        """Continues from what `get_state` returned."""
        self._kept.clear()
        self._kept.extend(state["kept"])

    def weights(self) -> list[np.ndarray]:
        """Returns the mean of the kept weights, a list of arrays for `set_weights`.

        Raises:
            ValueError: if no epoch has ended yet.
        """
        if not self._kept:
            raise ValueError("There is nothing to average: no epoch has ended yet.")
        return [
            np.mean(values, axis=0, dtype="float64").astype(values[0].dtype)
            for values in zip(*self._kept, strict=True)
        ]


class SaveTranslators(keras.callbacks.Callback):
    """Saves the translator after each epoch, and after the best epoch so far.

    The best epoch has the lowest `val_token_crossentropy`; without validation, the
    lowest `token_crossentropy`. `loss` is not used, because it includes the smoothing.

    Args:
        translator: Translator whose model is being trained.
        last_path: path of the file for the last epoch.
        best_path: path of the file for the best epoch.
        by_chrf: bool. The best epoch has the highest `val_chrf` instead, if logged.
    """

    def __init__(
        self,
        translator: Translator,
        last_path: Path,
        best_path: Path,
        by_chrf: bool = False,
    ):
        super().__init__()
        self.translator = translator
        self.last_path, self.best_path = last_path, best_path
        self.by_chrf = by_chrf
        self.best_epoch = None
        self._best = None

    def get_state(self) -> dict:
        """State for `ExactResume`: the best epoch and its score."""
        return {"epoch": self.best_epoch, "score": self._best}

    def set_state(self, state: dict) -> None:
        """Continues from what `get_state` returned."""
        self.best_epoch, self._best = state["epoch"], state["score"]

    def on_epoch_end(self, epoch, logs=None):
        self.translator.save(self.last_path)
        score = logs.get("val_token_crossentropy", logs["token_crossentropy"])
        if self.by_chrf and "val_chrf" in logs:
            score = -logs["val_chrf"]
        if self._best is None or not score >= self._best:  # true if `_best` is NaN
            self._best, self.best_epoch = score, epoch + 1
            with (
                open(self.last_path, "rb") as last,
                atomic_write(self.best_path) as best,
            ):
                shutil.copyfileobj(last, best)


class _Stateless(keras.callbacks.Callback):
    """A callback that needs no state, because each epoch or process starts anew."""

    def get_state(self) -> dict:
        """State for `ExactResume`: empty."""
        return {}

    def set_state(self, state: dict) -> None:
        """Nothing is to be restored."""


class TranslationScore(_Stateless):
    """Translates a corpus after each epoch; logs `val_bleu` and `val_chrf`.

    It uses greedy search and sacreBLEU's default settings. Put it before callbacks that
    read either score.

    Args:
        corpus: ParallelCorpus to translate.
        tokenizer: Tokenizer of the model that is trained.
    """

    def __init__(self, corpus: ParallelCorpus, tokenizer: Tokenizer):
        super().__init__()
        self.corpus = corpus
        self.tokenizer = tokenizer

    def on_train_begin(self, logs=None):
        self._translator = Translator(self.tokenizer, self.model)

    def on_epoch_end(self, epoch, logs=None):
        result = score(self._translator, self.corpus)
        logs["val_bleu"], logs["val_chrf"] = result.bleu, result.chrf


class TrainingCallbacks:
    """The callbacks of one training run.

    Args:
        run: TrainingRun with a translator and batches.
    Attributes:
        average: AverageCheckpoints.
        save: SaveTranslators.
        progress: TrainingProgress.
    """

    def __init__(self, run: "TrainingRun"):
        folder = run.folder
        self.average = AverageCheckpoints(run.config.average_last)
        self.save = SaveTranslators(
            run.translator,
            folder.last_path,
            folder.best_path,
            by_chrf=run.config.quantize is not None,
        )
        self.progress = TrainingProgress(run.batches.tokens_per_epoch)
        self._logs = [keras.callbacks.CSVLogger(str(folder.output / "history.csv"))]
        if importlib.util.find_spec("tensorboard"):
            logs = str(folder.output / "logs")
            self._logs.append(keras.callbacks.TensorBoard(logs, write_graph=False))
        self._scores = []
        if run.validation is not None:
            score = TranslationScore(run.validation, run.translator.tokenizer)
            self._scores.append(score)
        self._stops = _early_stopping(run) if run.config.patience else []
        self._of_the_user = run.callbacks

    def in_order(self) -> list[keras.callbacks.Callback]:
        """All callbacks; those that read `val_bleu` come after the one that logs it."""
        of_the_run = [*self._scores, self.average, self.save, *self._stops]
        return [*of_the_run, *self._of_the_user, *self._logs, self.progress]


def _early_stopping(run):
    """Stops training if the best epoch is `patience` epochs ago.

    It does not stop before the cooldown, in which the model still improves.
    """
    config, monitor, mode = run.config, "token_crossentropy", "min"
    if run.validation is not None:
        monitor = f"val_{monitor}"
        if config.quantize is not None:
            monitor, mode = "val_chrf", "max"
    first = config.epochs - config.cooldown_epochs if config.cooldown_epochs else 0
    return [
        keras.callbacks.EarlyStopping(
            monitor, patience=config.patience, mode=mode, start_from_epoch=first
        )
    ]


class TrainingProgress(_Stateless):
    """Shows the training steps and, after each epoch, its metrics.

        epoch 3/40: loss 2.413, accuracy 0.561, 12,345 tokens/s, 12:34 left
            validation: loss 2.530, accuracy 0.543, BLEU 21.3

    The loss is the cross-entropy per token, without smoothing.

    Args:
        tokens_per_epoch: int. Number of real target tokens per epoch.
        stream: text file to write to; None means standard error.
    """

    def __init__(self, tokens_per_epoch: int, stream: TextIO | None = None):
        super().__init__()
        self.tokens_per_epoch = tokens_per_epoch
        self._stream, self._display = stream, None

    def on_train_begin(self, logs=None):
        self._display = None
        self._steps_done = 0  # by this process
        self._training_began = time.monotonic()

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self._epoch_began, self._steps_before = time.monotonic(), self._steps_done

    def on_train_batch_begin(self, batch, logs=None):
        self._open(batch)

    def on_train_batch_end(self, batch, logs=None):
        steps = self.model.steps_per_execution
        self._steps_done += steps
        self._display.update(steps, loss=float(logs["token_crossentropy"]))

    def on_epoch_end(self, epoch, logs=None):
        self._open(self.params["steps"])
        seconds = time.monotonic() - self._epoch_began
        trained = (self._steps_done - self._steps_before) / self.params["steps"]
        self._display.write(
            f"epoch {epoch + 1}/{self.params['epochs']}: "
            f"loss {logs['token_crossentropy']:.3f}, "
            f"accuracy {logs['token_accuracy']:.3f}, "
            f"{self.tokens_per_epoch * trained / seconds:,.0f} tokens/s, "
            f"{self._time_left()} left"
        )
        texts = [
            f"{label} {logs[name]:.{digits}f}"
            for name, label, digits in (
                ("val_token_crossentropy", "loss", 3),
                ("val_token_accuracy", "accuracy", 3),
                ("val_bleu", "BLEU", 1),
            )
            if name in logs
        ]
        if texts:
            self._display.write(f"    validation: {', '.join(texts)}")

    def on_train_end(self, logs=None):
        self.close()

    def close(self) -> None:
        """Closes the display; also called after an error."""
        if self._display is not None:
            self._display.close()

    def _open(self, batch):
        """Opens the display of the remaining steps."""
        if self._display is None:
            left = self._steps_left(batch)
            self._display = Progress("Training", left, "steps", self._stream)

    def _steps_left(self, batch):
        return (self.params["epochs"] - self._epoch) * self.params["steps"] - batch

    def _time_left(self):
        seconds = time.monotonic() - self._training_began
        # `_steps_done` is 0 if the process was killed after the last step of an epoch.
        seconds *= self._steps_left(self.params["steps"]) / max(1, self._steps_done)
        return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
