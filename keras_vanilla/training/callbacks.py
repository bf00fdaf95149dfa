"""Callbacks: weight averaging, saved translators, BLEU, progress."""

import collections
import importlib.util
import math
import shutil
import time
from pathlib import Path
from typing import TextIO

import keras
import numpy as np

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla._checks import check_integer
from keras_vanilla._progress import Progress, minutes
from keras_vanilla.data import ParallelCorpus
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training.config import TrainingConfig
from keras_vanilla.training.resume.snapshots import unchanging
from keras_vanilla.translation.evaluation import score
from keras_vanilla.translation.translator import Translator


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
        self._kept.append(list(map(unchanging, self.model.get_weights())))

    def get_state(self) -> dict:
        """State for `ExactResume`: the weights of the last epochs."""
        return {"kept": list(self._kept)}

    def set_state(self, state: dict) -> None:
        """Continues from what `get_state` returned."""
        self._kept.clear()
        self._kept.extend(list(map(unchanging, kept)) for kept in state["kept"])

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
        if self._best is None or score < self._best or math.isnan(self._best):
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


def early_stopping(
    config: TrainingConfig, has_validation: bool
) -> list[keras.callbacks.Callback]:
    """The callback that stops training if the best epoch is `patience` epochs ago.

    It does not stop before the cooldown, in which the model still improves.

    Args:
        config: TrainingConfig that is resolved.
        has_validation: bool. Whether metrics of a validation text are logged.
    """
    if not config.patience:
        return []
    monitor, mode = "token_crossentropy", "min"
    if has_validation:
        monitor = f"val_{monitor}"
        if config.quantize is not None:
            monitor, mode = "val_chrf", "max"
    first = config.epochs - config.cooldown_epochs if config.cooldown_epochs else 0
    return [
        keras.callbacks.EarlyStopping(
            monitor, patience=config.patience, mode=mode, start_from_epoch=first
        )
    ]


def logs_in(folder: Path) -> list[keras.callbacks.Callback]:
    """Callbacks that write `history.csv` and, with TensorBoard, `logs/` to a folder."""
    logs = [keras.callbacks.CSVLogger(str(folder / "history.csv"))]
    if importlib.util.find_spec("tensorboard"):
        board = keras.callbacks.TensorBoard(str(folder / "logs"), write_graph=False)
        logs.append(board)
    return logs


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

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._epoch_began, self._steps_done = epoch, time.monotonic(), 0

    def on_train_batch_begin(self, batch, logs=None):
        if self._display is None:
            left = self._steps_left() - batch
            self._display = Progress("Training", left, "steps", self._stream)

    def on_train_batch_end(self, batch, logs=None):
        steps = self.model.steps_per_execution
        self._steps_done += steps
        self._display.update(steps, loss=float(logs["token_crossentropy"]))

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.monotonic() - self._epoch_began
        share = self._steps_done / self.params["steps"]  # less if it was resumed
        self._epoch = epoch + 1
        left = seconds / self._steps_done * self._steps_left()
        self._display.write(
            f"epoch {epoch + 1}/{self.params['epochs']}: "
            f"loss {logs['token_crossentropy']:.3f}, "
            f"accuracy {logs['token_accuracy']:.3f}, "
            f"{self.tokens_per_epoch * share / seconds:,.0f} tokens/s, "
            f"{minutes(left)} left"
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

    def _steps_left(self):
        return (self.params["epochs"] - self._epoch) * self.params["steps"]
