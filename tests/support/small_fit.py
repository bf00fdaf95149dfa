"""A training with `ExactResume` on a model that trains in no time."""

import keras
import numpy as np
import tensorflow as tf
from stopping import AfterBatches

from keras_vanilla.training import ExactResume


def data(batches=4):
    inputs = np.random.default_rng(0).normal(size=(batches * 5, 3)).astype("float32")
    pairs = tf.data.Dataset.from_tensor_slices((inputs, inputs @ np.ones((3, 2))))
    return pairs.batch(5)


def compiled(
    rate=0.05,
    seed=1,
    metrics=("mae",),
    loss="mse",
    dropout=0.4,
    steps=1,
    jit=False,
    **settings,
):
    """A model with dropout; `settings` are of Adam."""
    keras.utils.set_random_seed(seed)
    layers = [keras.Input((3,)), keras.layers.Dropout(dropout), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    model.compile(
        keras.optimizers.Adam(rate, **settings),
        loss,
        metrics=list(metrics),
        steps_per_execution=steps,
        jit_compile=jit,  # which takes longer than the training
    )
    return model


def fit(
    model,
    folder,
    callbacks=(),
    crash=None,
    epochs=4,
    every=1,
    allow_changed=(),
    **settings,
):
    resume = ExactResume(folder, data(), callbacks, every, allow_changed)
    others = [AfterBatches(crash)] if crash else []
    settings = {"verbose": 0, "shuffle": False, "epochs": epochs, **settings}
    return model.fit(data(), callbacks=[resume, *others], **settings)
