"""What a resumed training may and may not differ in from its snapshots."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_fit import compiled, data, features, fit, validation
from stopping import Crash

from keras_vanilla.training import AverageCheckpoints
from keras_vanilla.training.resume import identity
from keras_vanilla.training.resume.identity import identity_of, unlike


def identity_with(
    batches=None, callbacks=(), epochs=4, frozen=False, rounded=None, **model
):
    model = compiled(**model)
    model.fake_quantization = rounded
    model.weights[1].trainable = not frozen
    return identity_of(model, data(**batches or {}), callbacks, epochs)


def other_features(*batch):
    return features(*batch)


def random_labels(*batch):
    x, y = features(*batch)
    return x, y * tf.random.uniform([])


# What differs, and what an error says of it.
DIFFERENCES = {
    "loss": ({"loss": "mae"}, r"loss was .*'mse'.*'mae'.*allow_changed=\['loss'\]"),
    "optimizer": ({"beta_1": 0.5}, r"^optimizer has changed.*\['optimizer'\]"),
    "rate": ({"rate": 0.01}, r"learning_rate was \[0.05\] and is \[0.01\]; opt.*\['o"),
    "jit_compile": ({"jit": True}, "jit_compile was False and is True. .* another fol"),
    "model": ({"dropout": 0.3}, r"^model has changed. .*\['model'\]"),
    "precision": ({"dtype": "mixed_bfloat16"}, "model has changed"),
    "metrics": ({"metrics": ["mse"]}, r"metrics was .*\['metrics'\]"),
    "frozen": ({"frozen": True}, r"trainable was .*False\]. .*another folder"),
    "rounded": ({"rounded": "int8"}, "quantize was None and is 'int8'. .* another fo"),
    "epochs": ({"epochs": 5}, r"epochs was 4 and is 5. .*\['epochs'\]"),
    "data": ({"batches": {"seed": 3}}, "data was .*another folder"),
    "map": ({"batches": {"change": other_features}}, "data was .*another folder"),
    "length": ({"batches": {"steps": 3}}, "data was .*; steps was 4 and is 3"),
    "callbacks": ({"callbacks": [AverageCheckpoints()]}, "callbacks was .*'Average"),
}


@pytest.fixture(scope="module")
def unchanged():
    return identity_with()


@pytest.mark.parametrize("name", DIFFERENCES)
def test_identity_names_difference(unchanged, name):
    settings, pattern = DIFFERENCES[name]
    settings = dict(settings)
    policy, before = settings.pop("dtype", "float32"), keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        now = identity_with(**settings)
    finally:
        keras.config.set_dtype_policy(before)
    assert now != unchanged
    assert re.search(pattern, unlike(unchanged, now))


def test_identity_is_that_of_another_process(unchanged):
    """Of which Keras counts the layers, optimizers and models from 0 again."""
    assert unlike(unchanged, identity_with()) is None
    keras.backend.clear_session()
    assert unlike(unchanged, identity_with()) is None


def test_identity_of_custom_code_is_its_text():
    class Odd(keras.Sequential):
        def get_config(self):
            raise NotImplementedError

        get_compile_config = get_config

    def described(loss):
        model = Odd([keras.Input((3,)), keras.layers.Dense(2)])
        model.compile("sgd", loss)
        return identity_of(model, data(), [], 4)

    assert described("mse") == described("mse")
    assert "loss was" in unlike(described("mse"), described("mae"))


def test_other_training_is_refused_unless_allowed(tmp_path, monkeypatch):
    with pytest.raises(Crash):
        fit(compiled(), tmp_path, crash=6)
    with pytest.raises(ValueError, match="step-0+6.npz belongs to another .*loss was"):
        fit(compiled(loss="mae"), tmp_path)
    with pytest.raises(ValueError, match="trained more epochs than that, 1"):
        fit(compiled(), tmp_path, epochs=1, allow_changed=["epochs"])
    monkeypatch.setattr(identity, "__version__", "0.9.0")
    with pytest.raises(ValueError, match="versions was .*'0.9.0'"):
        fit(compiled(), tmp_path)
    fit(compiled(), tmp_path, allow_changed=["versions"])
    with pytest.raises(ValueError, match="epochs was 4 and is 5"):  # it is finished
        fit(compiled(), tmp_path, epochs=5)


@pytest.mark.parametrize("crash", [None, pytest.param(3, marks=pytest.mark.full)])
def test_allowed_epochs_continue_exactly(tmp_path, whole, weights_of, crash):
    validated = {"validation_data": validation()}
    if crash:
        with pytest.raises(Crash):
            fit(compiled(), tmp_path, crash=crash, epochs=2, **validated)
    else:
        fit(compiled(), tmp_path, epochs=2, **validated)
    again, allowed = compiled(seed=2), {"allow_changed": "epochs"}
    history = fit(again, tmp_path, epochs=4, **allowed, **validated).history
    assert (history, weights_of(again)) == whole
    fit(compiled(), tmp_path, epochs=4)  # now that of the snapshots


def stopping():
    return [keras.callbacks.EarlyStopping("loss", patience=1, min_delta=1e9)]


@pytest.mark.parametrize("callbacks", [list, stopping])
def test_finished_training_is_restored_without_steps(
    tmp_path, weights_of, capsys, callbacks
):
    first, model = compiled(), compiled(seed=2)
    history = fit(first, tmp_path, callbacks())
    settings = {"allow_changed": ["epochs"], "epochs": 20} if callbacks() else {}
    again = fit(model, tmp_path, callbacks(), verbose=2, **settings)
    assert again.history == history.history and weights_of(model) == weights_of(first)
    epochs = f"{len(history.epoch)} of {settings.get('epochs', 4)} epochs are finished"
    stopped = " and stopped by a callback" if callbacks() else ""
    assert f"{epochs}{stopped}, step" in capsys.readouterr().out
    steps = int(model.optimizer.iterations)
    assert model.fit(validation(), epochs=2, verbose=0).epoch == [0, 1]
    assert int(model.optimizer.iterations) == steps + 8


@pytest.mark.full
def test_allowed_metrics_begin_in_resumed_epoch(tmp_path, whole, weights_of):
    with pytest.raises(Crash):
        fit(compiled(), tmp_path, crash=6)
    again = compiled(seed=2, metrics=["mae", "mse"])
    history = fit(again, tmp_path, allow_changed=["metrics"]).history
    assert weights_of(again) == whole[1]
    assert len(history["mse"]) == 3
    for name in ("loss", "mae"):
        values = whole[0][name]
        assert history[name][2:] == values[2:]
        assert history[name][0] == values[0] and history[name][1] != values[1]


def reducing():
    return [keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=1e9)]


@pytest.mark.full
def test_rate_of_callbacks_is_no_difference_and_allowed_one_is_new(
    tmp_path, weights_of
):
    whole, again = compiled(), compiled()
    fit(whole, tmp_path / "whole", reducing())
    with pytest.raises(Crash):
        fit(again, tmp_path / "run", reducing(), crash=14)
    assert float(again.optimizer.learning_rate) < 0.01
    for model in (again, compiled()):  # in the same process, and in another
        fit(model, tmp_path / "run", reducing())
        assert weights_of(model) == weights_of(whole)
    other = compiled(rate=0.02)
    with pytest.raises(ValueError, match=r"learning_rate was \[0.05\] and is \[0.02\]"):
        fit(other, tmp_path / "run", reducing())
    fit(other, tmp_path / "run", reducing(), allow_changed=["optimizer"])
    assert float(other.optimizer.learning_rate) == np.float32(0.02)


@pytest.mark.full
def test_stop_within_epoch_lasts(tmp_path, weights_of):
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = int(self.model.optimizer.iterations) == 6

    whole, again = compiled(), compiled(seed=2)
    expected = fit(whole, tmp_path / "whole", [Stop()])
    with pytest.raises(Crash):
        fit(compiled(), tmp_path / "run", [Stop()], crash=6)
    history = fit(again, tmp_path / "run", [Stop()])
    assert history.epoch == expected.epoch == [0, 1]
    assert weights_of(again) == weights_of(whole)
    assert fit(compiled(), tmp_path / "run", [Stop()]).epoch == [0, 1]


def test_snapshot_of_other_variables_is_refused(tmp_path):
    fit(compiled(), tmp_path, epochs=1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="another model or optimizer: it has 9 var"):
        allowed = ["metrics", "model", "optimizer"]
        fit(model, tmp_path, epochs=1, allow_changed=allowed)


@pytest.mark.parametrize(
    ("others", "error", "message"),
    [
        (validation, TypeError, "use `batches.*a _BatchDataset"),
        (lambda: [np.ones(3)], TypeError, "use `batches.*a list"),
        (lambda: data().dataset(), TypeError, "use `batches.*its `map`"),
        (lambda: data(shuffle=False), ValueError, "shuffle=False"),
        (lambda: data(change=random_labels), ValueError, "changes the same batch"),
        (data, ValueError, "steps_per_execution=3, 4 batches"),
    ],
)
def test_resume_refuses_data_without_exact_steps(tmp_path, others, error, message):
    tf.random.set_seed(None)  # a seed gives each pass the same numbers
    with pytest.raises(error, match=message):
        steps = 3 if others is data else 1
        fit(compiled(steps=steps), tmp_path / "run", batches=others())
    assert not (tmp_path / "run").exists()
