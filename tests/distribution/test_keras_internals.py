"""Fails when Keras changes a private name that this package stands on."""

import contextlib
import hashlib
import inspect

import keras
import numpy as np
import pytest
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


def test_each_known_version_has_digests():
    assert DIGESTS.keys() == set(keras_internals.KNOWN_VERSIONS)


@pytest.mark.skipif(VERSION not in DIGESTS, reason="several devices are refused")
@pytest.mark.parametrize("function", private_names(), ids=lambda one: one.__qualname__)
def test_private_functions_of_keras_are_known(function):
    source = inspect.getsource(inspect.unwrap(function))
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    assert digest == DIGESTS[VERSION][function.__qualname__], (
        f"Keras has changed {function.__qualname__}. Read the new one next to "
        "keras_vanilla/distribution/keras_internals.py, run test_strategies.py and "
        "test_multi_worker.py, and then put the new digest here."
    )


def functions_of_keras():
    """The functions that overrides replace, as they are now."""
    names = ("make_train_function", "_maybe_symbolic_build")
    of_trainer = [vars(keras_internals.trainer_of_tensorflow())[name] for name in names]
    of_optimizer = optimizer.TFOptimizer._all_reduce_sum_gradients
    return [*of_trainer, trainer.reduce_per_replica, of_optimizer]


@pytest.mark.full
@pytest.mark.parametrize("scope", ["single", None])
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_training_on_one_device_does_not_change_keras(scope, micro_batches):
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
def test_other_keras_is_refused(version, monkeypatch):
    for known in ("3.14.0", "3.16.0.dev2026102704"):
        monkeypatch.setattr(keras, "__version__", known)
        keras_internals.require_known_keras()
    monkeypatch.setattr(keras, "__version__", version)
    message = f"several devices needs Keras 3.14 to 3.16, and this is {version}"
    with pytest.raises(RuntimeError, match=message):
        with keras_internals.overrides():
            pass
    with pytest.raises(RuntimeError, match=message):
        with keras_internals.gradients_already_summed(keras.optimizers.SGD()):
            pass


@pytest.mark.parametrize("name", ["Trainer", "TensorFlowTrainer"])
def test_both_names_of_trainer_are_known(name, monkeypatch):
    of_tensorflow = keras_internals.trainer_of_tensorflow()
    for each in ("Trainer", "TensorFlowTrainer"):
        monkeypatch.delattr(trainer, each, raising=False)
    monkeypatch.setattr(trainer, name, of_tensorflow, raising=False)
    assert keras_internals.trainer_of_tensorflow() is of_tensorflow
    assert of_tensorflow in keras.Model.__mro__
    assert trainer_of_every_backend() in keras.Model.__mro__


def test_gradients_already_summed_restores_optimizer():
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
