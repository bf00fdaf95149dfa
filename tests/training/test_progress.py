import io
import re

import keras
import pytest

from keras_vanilla import _progress
from keras_vanilla.training import callbacks
from keras_vanilla.training.callbacks import TrainingProgress

LOGS = {"token_crossentropy": 2.0, "token_accuracy": 0.5}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    for module in (callbacks, _progress):
        monkeypatch.setattr(module, "time", clock)
    return clock


def shown(clock, epochs, stream=None, **logs):
    """What is written of a training of 7 steps per epoch, resumed after the second.

    Its first step, which TensorFlow traces, takes 70 seconds, all others 5.
    """
    stream = stream or io.StringIO()
    progress = TrainingProgress(tokens_per_epoch=700, stream=stream)
    progress.set_model(keras.Sequential())
    progress.set_params({"epochs": epochs, "steps": 7})
    progress.close()  # before the first batch, which does nothing
    progress.on_train_begin()
    for epoch in range(epochs):
        progress.on_epoch_begin(epoch)
        for batch in range(0 if epoch else 2, 7):
            progress.on_train_batch_begin(batch)
            clock.now += 5 if epoch or batch > 2 else 70
            progress.on_train_batch_end(batch, LOGS)
        progress.on_epoch_end(epoch, LOGS | logs)
    progress.on_train_end()
    return stream.getvalue()


def test_log_shows_recent_speed_and_time_left(clock):
    assert shown(clock, 2).splitlines() == [
        "Training: 1 of 12 steps, 0.014 steps/s, loss 2, 12:50 left",
        "epoch 1/2: loss 2.000, accuracy 0.500, 6 tokens/s, 2:06 left",
        "Training: 7 of 12 steps, 0.2 steps/s, loss 2, 0:25 left",
        "epoch 2/2: loss 2.000, accuracy 0.500, 20 tokens/s, 0:00 left",
        "Training: 12 of 12 steps, 0.096 steps/s, loss 2",
    ]


def test_validation_has_a_line_of_its_own(clock):
    logs = {"val_token_crossentropy": 1.5, "val_token_accuracy": 0.25}
    lines = shown(clock, 1, **logs, val_bleu=12.345).splitlines()
    assert "    validation: loss 1.500, accuracy 0.250, BLEU 12.3" in lines


def test_lines_fit_80_columns(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    large = {"val_token_crossentropy": 10.5, "val_token_accuracy": 1, "val_bleu": 100}
    text = shown(clock, 100, Terminal(), **large)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    lines = text.replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= 80 and any("loss" in line for line in lines)
