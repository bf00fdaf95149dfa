"""A training that is killed at a chosen instant; a program for `test_exact_resume.py`.

    python killed_training.py FOLDER [plain|whole] [step|later|stop|bytes|write N]

"plain" is `ExactResume` on a model that trains in no time, "whole" is
`train_translator` with validation and BLEU. The last two arguments choose the instant
of SIGKILL: at step N of the whole training, up to a second later (at step N, with
SIGTERM, for "stop"), half-way through the bytes of the next snapshot, or before the
N-th time that this process syncs or renames a file. At its end the program prints what
must not depend on any kill.
"""

import hashlib
import io
import itertools
import json
import os
import random
import signal
import sys
import threading
from pathlib import Path

import keras
import numpy as np
from small_fit import compiled, data, validation
from word_reversal import corpus

from keras_vanilla import Translator
from keras_vanilla.training import AverageCheckpoints, ExactResume, train_translator
from keras_vanilla.training.resume import exact_resume


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class AtStep(keras.callbacks.Callback):
    """Calls a function at a step of the whole training, counted over all processes."""

    def __init__(self, step, action):
        super().__init__()
        self._step, self._action = step, action
        self.steps = 0

    def get_state(self):
        return {"steps": self.steps}

    def set_state(self, state):
        self.steps = state["steps"]

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if self._step and self.steps >= self._step:
            self._step = 0
            self._action()


def die_later():
    threading.Timer(random.Random().random(), die).start()


def die_in_snapshot():
    savez = np.savez

    def half_of_savez(file, *arrays):
        whole = io.BytesIO()
        savez(whole, *arrays)
        file.write(whole.getvalue()[: whole.tell() // 2])
        file.flush()
        die()

    np.savez = half_of_savez


def die_at_write(number):
    count = itertools.count(1)

    def counted(function):
        def call(*arguments, **named):
            if next(count) == number:
                die()
            return function(*arguments, **named)

        return call

    for name in ("fsync", "replace", "rename", "link", "truncate"):
        setattr(os, name, counted(getattr(os, name)))


def stop():
    os.kill(os.getpid(), signal.SIGTERM)


ACTIONS = {"step": die, "later": die_later, "stop": stop, "bytes": die_in_snapshot}


def plain(folder, kill, epochs=3):
    """`ExactResume` alone: 3 epochs of six steps, a snapshot every third step."""
    model = compiled(use_ema=True)  # Keras moves averages into the weights at the end
    folder.mkdir(parents=True, exist_ok=True)
    average = AverageCheckpoints(last=2)
    others = [
        average,
        keras.callbacks.CSVLogger(folder / "history.csv"),
        keras.callbacks.ModelCheckpoint(
            folder / "best.keras", monitor="loss", save_best_only=True
        ),
        kill,
    ]
    exact = ExactResume(folder / "snapshots", others, every=3)
    validated = {"validation_data": validation(), "verbose": 0}
    history = exact.fit(model, data(steps=6), epochs, **validated)
    return {
        "steps": int(model.optimizer.iterations),
        "weights": digest(model.get_weights()),
        "average": digest(average.weights()),
        "best": digest(keras.saving.load_model(folder / "best.keras").get_weights()),
        "history": history.history,
        "epochs": history.epoch,
        "log": (folder / "history.csv").read_text(),
    }


def whole(folder, kill, epochs=40):
    """`train_translator`, of about a minute."""
    exact_resume.SECONDS_BETWEEN = 0.2
    pairs, validation = corpus(600, 0), corpus(20, 1)
    translator = train_translator(
        pairs,
        folder,
        validation,
        preset="tiny",
        vocabulary_size=320,
        dropout=0.1,
        epochs=epochs,
        tokens_per_batch=512,
        warmup_steps=50,
        max_tokens=30,
        average_last=3,
        callbacks=[kill],
    )
    return {
        "steps": kill.steps,
        "chosen": digest(translator.model.get_weights()),
        "last": digest_of_file(folder / "last.keras"),
        "best": digest_of_file(folder / "best.keras"),
        "results": json.loads((folder / "results.json").read_text()),
        "log": (folder / "history.csv").read_text(),
    }


def digest(arrays):
    whole = b"".join(np.asarray(array).tobytes() for array in arrays)
    return hashlib.sha256(whole).hexdigest()


def digest_of_file(path):
    return digest(Translator.load(path).model.get_weights())


KINDS = {"plain": plain, "whole": whole}


def train(folder, kind="plain", where="step", number="0"):
    """What must not depend on any kill."""
    action, step = ACTIONS.get(where), int(number)
    if where == "write":
        die_at_write(step)
        step = 0
    return KINDS[kind](Path(folder), AtStep(step, action))


if __name__ == "__main__":
    print(json.dumps(train(*sys.argv[1:])))
