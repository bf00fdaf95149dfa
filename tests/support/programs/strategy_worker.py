"""Trains a small model under strategies, one run after the other, in its own process.

    python strategy_worker.py OUTPUT.npz DEVICES '{"run's name": {options}, ...}'

`trained` is also what tests call to train the same model on the one device they have.
"""

import contextlib
import json
import os
import sys
from unittest import mock

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
from keras.src.backend.tensorflow import trainer as keras_trainer
from models import SIZES
from word_reversal import dutch, english_sentences

from keras_vanilla import Transformer, distribution, training
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.tokenizer import Tokenizer

STEPS, EPOCHS = 13, 2
VOCABULARY_SIZE = 318
DEFAULTS = {
    "strategy": None,
    "outside": (),
    "optimizer": {},
    "model": {},
    "compile": {},
    "micro_batches": 1,
    "stock_step": False,
    "own_share": True,
    "reduction": None,  # of a loss of Keras instead of ours
    "ignored": None,  # label that it ignores
    "stock": None,
    "plain_model": False,
    "validated": True,
    # None: no weights at all; "pairs": 0.9 for each pair; "position": 0.3 to 3
    "weights_times": 1.0,
}


class StockStep(Transformer):
    """Leaves the training step to Keras."""

    def train_step(self, data):
        return keras.Model.train_step(self, data)


def trained(**options):
    """Weights before and after, history and counts of a training, flat, by name."""
    options = {**DEFAULTS, **options}
    outside = {name: MAKERS[name](options) for name in options["outside"]}
    name = options["strategy"]
    with distribution.strategy(name) if name else contextlib.nullcontext():
        # in one order: workers broadcast each variable that they make
        inside = {name: MAKERS[name](options) for name in MAKERS if name not in outside}
        with stock_again(options["stock"]), mean_per_replica(not options["own_share"]):
            return fitted(options, **inside, **outside)


@contextlib.contextmanager
def stock_again(name):
    """Takes an override of Keras back, by the name of what it overrides."""
    for owner in (keras_trainer, keras_trainer.TensorFlowTrainer):
        if name in vars(owner):
            with mock.patch.object(owner, name, vars(owner)[name].__wrapped__):
                yield
                return
    yield


@contextlib.contextmanager
def mean_per_replica(mistaken):
    """The mistake that everybody makes: each replica divides by its own tokens."""
    if not mistaken:
        yield
        return
    with mock.patch("keras_vanilla.training.loss.replica_share", lambda weights: 1.0):
        yield


def data(options):
    """Batches to train and to validate on."""
    sources = english_sentences(100, seed=0)
    targets = [dutch(source) for source in sources]
    tokenizer = Tokenizer.train(
        lines=sources + targets, vocabulary_size=VOCABULARY_SIZE
    )
    settings = {"tokens_per_batch": 96, "max_tokens": 32}
    train = batches(ParallelCorpus(sources[:83], targets[:83]), tokenizer, **settings)
    times = options["weights_times"]
    if times is None:
        train = train.map(lambda x, y, weights: (x, y))
    elif times == "position":
        train = train.map(
            lambda x, y, weights: (
                x,
                y,
                weights * tf.linspace(0.3, 3.0, tf.shape(weights)[1]),
            )
        )
    elif times == "pairs":
        train = train.map(
            lambda x, y, weights: (x, y, 0.9 * tf.reduce_max(weights, axis=1))
        )
    elif times != 1.0:
        train = train.map(lambda x, y, weights: (x, y, weights * times))
    valid = ParallelCorpus(sources[83:], targets[83:])
    return train, batches(valid, tokenizer, shuffle=False, **settings)


def model(options):
    keras.utils.set_random_seed(0)
    sizes = {
        "source_vocabulary_size": VOCABULARY_SIZE,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    }
    model_class = StockStep if options["stock_step"] else Transformer
    made = model_class(**{**SIZES, **sizes, **options["model"]})
    return keras.Model(made.input, made.output) if options["plain_model"] else made


def optimizer(options):
    return keras.optimizers.SGD(**{"learning_rate": 0.5, **options["optimizer"]})


def loss(options):
    if options["reduction"] is None:
        return training.SmoothedCrossentropy(0.1)
    return keras.losses.SparseCategoricalCrossentropy(
        True, ignore_class=options["ignored"], reduction=options["reduction"]
    )


MAKERS = {"data": data, "model": model, "optimizer": optimizer, "loss": loss}


def fitted(options, data, model, optimizer, loss):
    settings = {"jit_compile": False, **options["compile"]}
    if options["micro_batches"] > 1:
        settings["micro_batches"] = options["micro_batches"]
    model.compile(
        optimizer,
        loss,
        metrics=[training.TokenCrossentropy(), training.TokenAccuracy()],
        **settings,
    )
    before, (train, valid) = model.get_weights(), data
    if options["plain_model"]:
        train, valid = train.dataset(), valid.dataset()
    history = model.fit(
        train,
        steps_per_epoch=STEPS,
        epochs=EPOCHS,
        validation_data=valid if options["validated"] else None,
        shuffle=False,
        verbose=0,
    ).history
    found = {f"history/{key}": values for key, values in history.items()}
    for number, (old, new) in enumerate(zip(before, model.get_weights(), strict=True)):
        found[f"before/{number}"], found[f"after/{number}"] = old, new
    found["iterations"] = optimizer.iterations.numpy()
    return found


def distance(found, expected):
    """The largest difference of trained weights, over the largest movement."""
    names = [name for name in expected if name.startswith("after/")]
    moved = max(
        np.abs(expected[name] - expected[name.replace("after", "before")]).max()
        for name in names
    )
    return max(np.abs(found[name] - expected[name]).max() for name in names) / moved


def main(path, devices, runs):
    if devices > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        parts = [tf.config.LogicalDeviceConfiguration()] * devices
        tf.config.set_logical_device_configuration(cpu, parts)
    found = {}
    for run, options in runs.items():
        try:
            values = trained(**options)
        except Exception as error:
            values = {"error": f"{type(error).__name__}: {error}"}
        found.update({f"{run}/{name}": value for name, value in values.items()})
    np.savez(path, **found)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))
