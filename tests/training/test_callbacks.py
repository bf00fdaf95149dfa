import importlib.util
import types

import keras
import numpy as np
import pytest

from keras_vanilla.training import AverageCheckpoints
from keras_vanilla.training.callbacks import early_stopping, logs_in
from keras_vanilla.training.config import TrainingConfig


def linear_model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    return model


def test_average_is_mean_of_last_epochs():
    model = linear_model()
    seen = []
    record = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(model.get_weights())
    )
    average = AverageCheckpoints(last=3)
    x, y = np.random.default_rng(0).normal(size=(2, 8, 3))
    model.fit(x[:, :2], y, epochs=5, callbacks=[record, average], verbose=0)
    for index, values in enumerate(average.weights()):
        expected = np.mean([weights[index] for weights in seen[2:]], axis=0)
        np.testing.assert_allclose(values, expected, rtol=1e-6)
        assert values.dtype == "float32"
    assert not np.allclose(average.weights()[0], model.get_weights()[0])


def test_fewer_epochs_than_to_average_are_all_averaged():
    model = linear_model()
    average = AverageCheckpoints(last=5)
    model.fit(np.ones((2, 2)), np.ones((2, 3)), callbacks=[average], verbose=0)
    np.testing.assert_allclose(average.weights()[0], model.get_weights()[0])


@pytest.mark.parametrize("installed", [True, False])
def test_tensorboard_has_log_if_installed(installed, tmp_path, monkeypatch):
    found = {"tensorboard": installed}
    monkeypatch.setattr(importlib.util, "find_spec", found.__getitem__)
    kinds = [type(each) for each in logs_in(tmp_path)]
    assert keras.callbacks.CSVLogger in kinds
    assert (keras.callbacks.TensorBoard in kinds) == installed


@pytest.mark.parametrize(
    ("has_validation", "settings", "watched"),
    [
        (True, {}, None),
        (False, {"patience": 3}, ("token_crossentropy", "min")),
        (True, {"patience": 3}, ("val_token_crossentropy", "min")),
        (True, {"patience": 3, "quantize": "int8"}, ("val_chrf", "max")),
        (False, {"patience": 3, "quantize": "int8"}, ("token_crossentropy", "min")),
    ],
)
def test_patience_watches_best_metric(has_validation, settings, watched):
    callbacks = early_stopping(TrainingConfig(**settings), has_validation)
    assert [(each.monitor, each.mode) for each in callbacks] == [watched] * bool(
        watched
    )
    for each in callbacks:
        assert each.patience == 3 and each.restore_best_weights is False


def test_training_does_not_end_before_its_cooldown():
    config = TrainingConfig(epochs=9, cooldown_epochs=4, patience=2)
    (callback,) = early_stopping(config, has_validation=False)
    callback.set_model(types.SimpleNamespace(stop_training=False))
    callback.on_train_begin()
    ended = []
    for epoch in range(9):  # which get worse
        callback.on_epoch_end(epoch, {"token_crossentropy": epoch})
        ended.append(callback.model.stop_training)
    assert ended.index(True) == 7
