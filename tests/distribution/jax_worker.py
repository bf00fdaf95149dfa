"""Trains a small model on JAX, in one strategy after another, and keeps what happened.

    python jax_worker.py FOLDER RUN...

A run is the name of a strategy, alone or with "+per-replica-mean": a mistake, each half
of a batch divided by its own tokens. `FOLDER/RUN-PROCESS.npz` holds the weights before
and after 50 steps of SGD, the numbers that `fit` has shown, and the labels that this
process has read in an epoch; `RUN.keras` is what process 0 has saved.
"""

import gc
import sys
from pathlib import Path

import jax
import keras
import numpy as np
from checks import array, randomize
from word_reversal import corpus, dutch, english_sentences

from keras_vanilla import Transformer
from keras_vanilla.data import batches
from keras_vanilla.distribution.jax_devices import distribution
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training import (
    SmoothedCrossentropy,
    TokenAccuracy,
    TokenCrossentropy,
)

STEPS, EPOCHS, WIDTH = 10, 5, 13
LINES = english_sentences(100, 7)
TOKENIZER = Tokenizer.train(lines=[*LINES, *map(dutch, LINES)], vocabulary_size=314)


def data(rows):
    shape = {"tokens_per_batch": rows * WIDTH, "max_tokens": WIDTH, "widths": [WIDTH]}
    shape["static_shapes"] = True
    train = batches(
        corpus(rows * STEPS - 3, 0, range(1, 4)), TOKENIZER, seed=3, **shape
    )
    assert train.steps_per_epoch == STEPS
    return train, batches(corpus(17, 1, range(1, 4)), TOKENIZER, shuffle=False, **shape)


def per_replica_mean(inputs, labels, weights):
    import tensorflow as tf

    halves = tf.reshape(weights, (2, -1))
    totals = tf.reduce_sum(halves, axis=1, keepdims=True)
    means = tf.math.divide_no_nan(halves, totals)
    return inputs, labels, tf.reshape(means / 2, tf.shape(weights))


def new_model():
    keras.utils.set_random_seed(11)
    model = Transformer(
        TOKENIZER.vocabulary_size,
        d_model=14,
        num_heads=2,
        d_ff=22,
        num_encoder_layers=1,
        num_decoder_layers=1,
        dropout=0.0,
    )
    metrics = [TokenCrossentropy(), TokenAccuracy()]
    model.compile(keras.optimizers.SGD(0.1), SmoothedCrossentropy(), metrics=metrics)
    return randomize(model, 5)


def what_is_read(dataset):
    batches = list(dataset.dataset().take(STEPS).as_numpy_iterator())
    yield "read/labels", np.stack([labels for _, labels, _ in batches])


def what_is_learnt(model, train, valid):
    for weight in model.weights:
        yield f"before/{weight.path}", array(weight)
    shown = model.fit(
        train,
        steps_per_epoch=STEPS,
        epochs=EPOCHS,
        validation_data=valid,
        shuffle=False,
        verbose=0,
    ).history
    for weight in model.weights:
        yield f"after/{weight.path}", array(weight)
    for name, values in shown.items():
        yield f"shown/{name}", np.array(values)


def run(name, folder):
    strategy, _, kind = name.partition("+")
    with distribution(strategy):
        train, valid = data(rows=7)  # no multiple of two devices
        if kind:
            train = train.map(per_replica_mean)
        model = new_model()
        kept = dict(what_is_read(train))
        kept |= dict(what_is_learnt(model, train, None if kind else valid))
        if jax.process_index() == 0:
            with distribution("single"):  # a file is written by one process alone
                model.save(folder / f"{name}.keras")
    np.savez(folder / f"{name}-{jax.process_index()}.npz", **kept)


if __name__ == "__main__":
    for each in sys.argv[2:]:
        run(each, Path(sys.argv[1]))
    gc.collect()  # a stream that is open when Python ends may keep it from ending
