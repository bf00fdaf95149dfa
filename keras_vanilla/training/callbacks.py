"""What is kept of a training: the last and the best translator, and an average."""

import collections

import keras
import numpy as np


class AverageCheckpoints(keras.callbacks.Callback):
    """Keeps the weights of the last epochs, to use their mean.

    The paper averages the last 5 checkpoints of its base models. The weights are held
    in memory: `last` times the model's size.

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

    def __init__(self, last=5):
        super().__init__()
        if last < 1:
            raise ValueError(f"`last` must be at least 1. Received: {last}")
        self.last = last
        self._kept = collections.deque(maxlen=last)

    def on_epoch_end(self, epoch, logs=None):
        self._kept.append(self.model.get_weights())

    def get_state(self):
        """What `ExactResume` keeps: the weights of the last epochs."""
        return {"kept": list(self._kept)}

    def set_state(self, state):
        """Goes on from what `get_state` gave."""
        self._kept.clear()
        self._kept.extend(state["kept"])

    def weights(self):
        """The mean of the kept weights: a list of arrays, as `set_weights` takes.

        Raises:
            ValueError: if no epoch has ended yet.
        """
        if not self._kept:
            raise ValueError("There is nothing to average: no epoch has ended yet.")
        return [
            np.mean(values, axis=0, dtype="float64").astype(values[0].dtype)
            for values in zip(*self._kept, strict=True)
        ]


class KeepTranslators(keras.callbacks.Callback):
    """Saves the translator after each epoch: the last, and the best so far.

    The best has the lowest `val_token_crossentropy`; without validation, the lowest
    `token_crossentropy`. Never `loss`, which holds the smoothing.

    Args:
        translator: Translator whose model is being trained.
        folder: pathlib.Path of a folder that exists.
    """

    def __init__(self, translator, folder):
        super().__init__()
        self.translator = translator
        self.last_path = folder / "last.keras"
        self.best_path = folder / "best.keras"
        self.best_epoch = None
        self._best = None

    def get_state(self):
        """What `ExactResume` keeps: the best epoch and its score."""
        return {"epoch": self.best_epoch, "score": self._best}

    def set_state(self, state):
        """Goes on from what `get_state` gave."""
        self.best_epoch, self._best = state["epoch"], state["score"]

    def on_epoch_end(self, epoch, logs=None):
        self.translator.save(self.last_path)
        score = logs.get("val_token_crossentropy", logs["token_crossentropy"])
        if self._best is None or not score >= self._best:  # anything beats no number
            self._best, self.best_epoch = score, epoch + 1
            self.translator.save(self.best_path)
