"""A small training that gets SIGTERM: FOLDER [step | validation].

It prints the digest of its weights, and its history.
"""

import hashlib
import os
import signal
import sys

import keras
from small_fit import compiled, fit, validation


class Stop(keras.callbacks.Callback):
    """Sends SIGTERM in the second epoch."""

    def __init__(self, place):
        super().__init__()
        self._place, self._epoch = place, 0

    def get_state(self):
        return {}

    def set_state(self, state):
        pass

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        self._stop_in("step", batch)

    def on_test_batch_begin(self, batch, logs=None):
        self._stop_in("validation", batch)

    def _stop_in(self, place, batch):
        if place == self._place and self._epoch == 1 and batch == 2:
            os.kill(os.getpid(), signal.SIGTERM)


def main(folder, place=None):
    model = compiled()
    settings = {"every": 10**9, "validation_data": validation()}
    history = fit(model, folder, [Stop(place)], **settings).history
    weights = b"".join(value.tobytes() for value in model.get_weights())
    print(hashlib.sha256(weights).hexdigest(), history)


main(*sys.argv[1:])
