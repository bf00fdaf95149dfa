"""Fails when Keras changes a private name that this package stands on."""

import contextlib
import hashlib
import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.backend.tensorflow import optimizer, trainer
from models import inputs, make_model

from keras_vanilla.distribution import keras_internals, strategy
from keras_vanilla.training import SmoothedCrossentropy

VERSION = ".".join(keras.__version__.split(".")[:2])
DIGESTS = {
    "3.15": {
        "Trainer.compile": "98ee80c63ae7404a",
        "TensorFlowTrainer.make_train_function": "a9703da4a49beb28",
        "Trainer._symbolic_build": "96220cc3b88fe768",
        "TensorFlowTrainer.fit": "a9a6dc02a7ddafa8",
        "TensorFlowTrainer._maybe_symbolic_build": "92a504f5eba9b29f",
        "TensorFlowTrainer.train_step": "debf0efab9d5794b",
        "TensorFlowTrainer.test_step": "a8f04a25512e74e2",
        "reduce_per_replica": "2e7d54b1e6edc29a",
        "TFOptimizer._all_reduce_sum_gradients": "953512efa56c9680",
        "TFOptimizer._backend_update_step": "00bd759c099a6b72",
    }
}
DIGESTS["3.14"] = DIGESTS["3.15"] | {
    "Trainer.compile": "dbf84c5a4b50fdba",
    "TensorFlowTrainer.fit": "6bf8bc1004adaba6",
}
DIGESTS["3.16"] = {  # of a nightly
    name.replace("Trainer", "BaseTrainer", 1)
    if name.startswith("Trainer")
    else name.replace("TensorFlowTrainer", "Trainer"): digest
    for name, digest in DIGESTS["3.15"].items()
} | {"BaseTrainer._symbolic_build": "52eebdd95b04c3fd"}


def trainer_of_every_backend():
    """The base class of all trainers: `Trainer`, or `BaseTrainer` in Keras 3.16."""
    from keras.src.trainers import trainer

    return getattr(trainer, "BaseTrainer", None) or trainer.Trainer


def private_names():
    """The objects behind the names that `keras_internals` uses, on TensorFlow."""
    of_tensorflow = keras_internals.trainer_of_tensorflow()
    of_all = trainer_of_every_backend()
    return [
        of_tensorflow._maybe_symbolic_build,
        of_tensorflow.train_step,
        of_tensorflow.test_step,
        of_tensorflow.fit,
        of_tensorflow.make_train_function,
        trainer.reduce_per_replica,
        optimizer.TFOptimizer._all_reduce_sum_gradients,
        optimizer.TFOptimizer._backend_update_step,
        of_all._symbolic_build,
        of_all.compile,
    ]


def test_every_version_that_is_let_through_was_looked_at():
    assert DIGESTS.keys() == set(keras_internals.KNOWN_VERSIONS)


@pytest.mark.skipif(VERSION not in DIGESTS, reason="several devices are refused")
@pytest.mark.parametrize("function", private_names(), ids=lambda one: one.__qualname__)
def test_keras_is_the_one_this_was_written_for(function):
    source = inspect.getsource(inspect.unwrap(function))
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    assert digest == DIGESTS[VERSION][function.__qualname__], (
        f"Keras has changed {function.__qualname__}. Read the new one next to "
        "keras_vanilla/distribution/keras_internals.py, run test_strategies.py and "
        "test_multi_worker.py, and then put the new digest here."
    )


def test_operations_are_deterministic_only_while_asked():
    """By `tensorflow.python.framework.config`, the only way back."""
    from tensorflow.python.framework import config

    for before in (False, True):
        with keras_internals.deterministic_operations():
            assert config.is_op_determinism_enabled()
        assert config.is_op_determinism_enabled() is before
        config.enable_op_determinism()


def functions_of_keras():
    """The functions that overrides replace, as they are now."""
    names = ("make_train_function", "_maybe_symbolic_build")
    of_trainer = [vars(keras_internals.trainer_of_tensorflow())[name] for name in names]
    of_optimizer = optimizer.TFOptimizer._all_reduce_sum_gradients
    return [*of_trainer, trainer.reduce_per_replica, of_optimizer]


@pytest.mark.full
@pytest.mark.parametrize("scope", ["single", None])
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_training_on_one_device_leaves_keras_as_it_is(scope, micro_batches):
    before = functions_of_keras()
    with strategy(scope) if scope else contextlib.nullcontext():
        model = make_model(num_encoder_layers=1, num_decoder_layers=1)
        settings = {"micro_batches": micro_batches, "jit_compile": False}
        model.compile("sgd", SmoothedCrossentropy(), **settings)
        feed = inputs()
        model.train_on_batch(feed, feed["target_ids"])
        assert functions_of_keras() == before
    assert functions_of_keras() == before
    assert "_all_reduce_sum_gradients" not in vars(model.optimizer)


def test_overrides_end_with_their_scope():
    before = functions_of_keras()
    with keras_internals.overrides():
        assert functions_of_keras() != before
        with keras_internals.overrides():
            pass
        assert functions_of_keras() != before
    assert functions_of_keras() == before


@pytest.mark.parametrize("version", ["3.17.0", "3.140.0", "4.0.0"])
def test_another_keras_is_refused(version, monkeypatch):
    monkeypatch.setattr(keras, "__version__", version)
    message = f"several devices needs Keras 3.14 to 3.16, and this is {version}"
    with pytest.raises(RuntimeError, match=message):
        with keras_internals.overrides():
            pass
    with pytest.raises(RuntimeError, match=message):
        with keras_internals.gradients_already_summed(keras.optimizers.SGD()):
            pass


@pytest.mark.parametrize("version", ["3.14.0", "3.16.0.dev2026102704"])
def test_a_known_keras_is_let_through(version, monkeypatch):
    monkeypatch.setattr(keras, "__version__", version)
    keras_internals.require_known_keras()


@pytest.mark.parametrize("name", ["Trainer", "TensorFlowTrainer"])
def test_both_names_of_the_trainer_are_known(name, monkeypatch):
    of_tensorflow = keras_internals.trainer_of_tensorflow()
    for each in ("Trainer", "TensorFlowTrainer"):
        monkeypatch.delattr(trainer, each, raising=False)
    monkeypatch.setattr(trainer, name, of_tensorflow, raising=False)
    assert keras_internals.trainer_of_tensorflow() is of_tensorflow
    assert of_tensorflow in keras.Model.__mro__
    assert trainer_of_every_backend() in keras.Model.__mro__


@pytest.mark.full
def test_training_on_one_device_works_on_every_keras(monkeypatch):
    monkeypatch.setattr(keras, "__version__", "3.99.0")
    model = make_model(num_encoder_layers=1, num_decoder_layers=1)
    optimizer = keras.optimizers.Adam(global_clipnorm=1.0)
    model.compile(optimizer, SmoothedCrossentropy(), micro_batches=2)
    feed = inputs()
    data = tf.data.Dataset.from_tensors((feed, feed["target_ids"]))
    model.fit(data, verbose=0)
    assert optimizer.iterations == 1


def test_gradients_already_summed_returns_the_optimizer_as_it_was():
    sgd = keras.optimizers.SGD()
    pairs = [(np.ones(1), None)]
    with keras_internals.gradients_already_summed(sgd):
        with keras_internals.gradients_already_summed(sgd):
            pass
        assert sgd._all_reduce_sum_gradients(iter(pairs)) == pairs
    assert "_all_reduce_sum_gradients" not in vars(sgd)


def test_loss_with_ignored_class_attaches_its_mask():
    labels, logits = np.array([[3, 0]]), np.zeros((1, 2, 5), "float32")
    for ignored, expected in ((None, None), (0, [[True, False]])):
        values = keras.losses.sparse_categorical_crossentropy(
            labels, logits, from_logits=True, ignore_class=ignored
        )
        mask = keras_internals.mask_of(values)
        assert (mask if mask is None else mask.numpy().tolist()) == expected
