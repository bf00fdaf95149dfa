"""Ends a training in its middle."""

import keras


class Crash(Exception):
    """What ends `fit` in one process as a kill would."""


def crash():
    raise Crash


class AfterBatches(keras.callbacks.Callback):
    """Does something after so many batches of this process, `crash` unless told."""

    def __init__(self, batches, do=crash):
        super().__init__()
        self._left, self._do = batches, do

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        if not self._left:
            self._do()
