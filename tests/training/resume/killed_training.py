"""A training that is killed at a chosen instant; a program for `test_exact_resume.py`.

    python killed_training.py FOLDER [plain|whole] [step|later|bytes|replace N]

"plain" is `ExactResume` on a model that trains in no time, "whole" is
`train_translator` with validation and BLEU. The last two choose the instant of SIGKILL,
from step N of the whole training on: at that step, up to a second later, half-way
through the bytes of the next file in the folder of snapshots, or before that file gets
its name. At its end the program prints what must not depend on any kill.
"""

import hashlib
import io
import json
import os
import random
import signal
import sys
import threading
from pathlib import Path

import keras
import numpy as np
from small_fit import compiled, data
from word_reversal import dutch, english_sentences

from keras_vanilla import Translator, _atomic_write
from keras_vanilla.data import ParallelCorpus
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


def die_in_write(after_half):
    """Kills this process inside the next file that it writes among the snapshots."""
    savez, replace = np.savez, os.replace

    def half_of_savez(file, **arrays):
        whole = io.BytesIO()
        savez(whole, **arrays)
        file.write(whole.getvalue()[: whole.tell() // 2])
        file.flush()
        die()

    def never_replace(source, target):
        if Path(source).parent.name == "snapshots":
            die()
        replace(source, target)

    if after_half:
        np.savez = half_of_savez
    else:
        _atomic_write.os.replace = never_replace


ACTIONS = {
    "step": die,
    "later": die_later,
    "bytes": lambda: die_in_write(after_half=True),
    "replace": lambda: die_in_write(after_half=False),
}


def corpus(count, seed):
    sources = english_sentences(count, seed)
    return ParallelCorpus(sources, map(dutch, sources))


def plain(folder, kill, epochs=3):
    """`ExactResume` alone: 3 epochs of six steps, a snapshot every third step."""
    model = compiled()
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
    history = exact.fit(model, data(steps=6), epochs, verbose=0)
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


def train(folder, kind="plain", where="step", number="0"):
    """What must not depend on any kill."""
    kind = plain if kind == "plain" else whole
    return kind(Path(folder), AtStep(int(number), ACTIONS[where]))


if __name__ == "__main__":
    print(json.dumps(train(*sys.argv[1:])))
