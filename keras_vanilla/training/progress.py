"""What a person watches during a training."""

import time
from typing import TextIO

import keras

from keras_vanilla._progress import Progress


class TrainingProgress(keras.callbacks.Callback):
    """Shows the steps of a training and, after each epoch, its numbers.

        epoch 3/40: loss 2.413, accuracy 0.561, 12,345 tokens/s, 12:34 left
            validation: loss 2.530, accuracy 0.543, BLEU 21.3

    The loss is the cross-entropy per token, without the smoothing.

    Args:
        tokens_per_epoch: int. Real target tokens of one epoch.
        stream: text file to write to; None means standard error.
    """

    def __init__(self, tokens_per_epoch: int, stream: TextIO | None = None):
        super().__init__()
        self.tokens_per_epoch = tokens_per_epoch
        self._stream = stream

    def get_state(self) -> dict:
        """What `ExactResume` stores: nothing, each process shows its own steps."""
        return {}

    def set_state(self, state: dict) -> None:
        """Nothing is to be restored."""

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
        steps = getattr(self.model, "steps_per_execution", 1)
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
        """Ends the display, also after an error."""
        if getattr(self, "_display", None):
            self._display.close()

    def _open(self, batch):
        """Opens the display of the steps that are left for this process."""
        if self._display is None:
            left = self._steps_left(batch)
            self._display = Progress("Training", left, "steps", self._stream)

    def _steps_left(self, batch):
        return (self.params["epochs"] - self._epoch) * self.params["steps"] - batch

    def _time_left(self):
        seconds = time.monotonic() - self._training_began
        # No step is done if the process was killed after the last one of its epoch.
        seconds *= self._steps_left(self.params["steps"]) / max(1, self._steps_done)
        return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
