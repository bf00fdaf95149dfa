import io
import re

import keras

from keras_vanilla.training.callbacks import TrainingProgress

LOGS = {"token_crossentropy": 2.0, "token_accuracy": 0.5}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(epochs, stream=None, **logs):
    """What is written of a training that is resumed at the end of its first epoch."""
    stream = stream or io.StringIO()
    progress = TrainingProgress(tokens_per_epoch=700, stream=stream)
    progress.set_model(keras.Sequential())
    progress.set_params({"epochs": epochs, "steps": 7})
    progress.on_train_begin()
    progress.on_epoch_begin(0)
    progress.on_epoch_end(0, LOGS | logs)
    for epoch in range(1, epochs):
        progress.on_epoch_begin(epoch)
        for batch in range(7):
            progress.on_train_batch_begin(batch)
            progress.on_train_batch_end(batch, LOGS)
        progress.on_epoch_end(epoch, LOGS | logs)
    progress.on_train_end()
    return stream.getvalue()


def test_each_epoch_has_a_line_and_the_training_one_at_its_end():
    first, second, last = shown(2).splitlines()
    assert first == "epoch 1/2: loss 2.000, accuracy 0.500, 0 tokens/s, 0:00 left"
    assert second.startswith("epoch 2/2: loss 2.000, accuracy 0.500, ")
    assert second.endswith(" tokens/s, 0:00 left") and " 0 tokens/s" not in second
    assert last.startswith("Training: 7 of 7 steps, ")


def test_validation_has_a_line_of_its_own():
    lines = shown(
        2, val_token_crossentropy=1.5, val_token_accuracy=0.25, val_bleu=12.345
    ).splitlines()
    assert lines[1] == "    validation: loss 1.500, accuracy 0.250, BLEU 12.3"


def test_lines_fit_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    large = {"val_token_crossentropy": 10.5, "val_token_accuracy": 1, "val_bleu": 100}
    text = shown(100, Terminal(), **large)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    lines = text.replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= 80 and any("loss" in line for line in lines)


def test_closing_before_the_first_batch_does_nothing():
    progress = TrainingProgress(tokens_per_epoch=700)
    progress.close()
    progress.on_train_begin()
    progress.close()
