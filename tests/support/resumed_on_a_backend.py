"""A small training that is stopped and resumed on Keras's backend: FOLDER."""

import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parent))

from stopping import AfterBatches, Crash  # noqa: E402

from keras_vanilla.training import ExactResume  # noqa: E402


def data():
    """Four batches per epoch, the same in each."""
    inputs = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
    labels = inputs @ np.ones((3, 2), "float32")
    return tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(5)


def train(folder, seed, crash=None):
    keras.utils.set_random_seed(seed)
    layers = [keras.Input((3,)), keras.layers.Dropout(0.4), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    callbacks = [ExactResume(folder, data(), every=1)]
    callbacks += [AfterBatches(crash)] if crash else []
    history = model.fit(data(), epochs=3, callbacks=callbacks, shuffle=False, verbose=0)
    return model.get_weights(), history.history


def main(folder):
    whole, history = train(folder / "whole", 1)
    for crash in (2, 4, 6):
        run = folder / f"crash-{crash}"
        try:
            train(run, 1, crash)
            raise AssertionError("The training did not stop.")
        except Crash:
            pass
        weights, again = train(run, 2)
        assert again == history, (crash, again, history)
        for one, other in zip(whole, weights, strict=True):
            np.testing.assert_array_equal(one, other)


main(Path(sys.argv[1]))
