"""What a resumed training may and may not differ in from its snapshots."""

import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_fit import compiled, data, features, fit, validation
from stopping import Crash

from keras_vanilla.training import AverageCheckpoints
from keras_vanilla.training.resume import identity
from keras_vanilla.training.resume.snapshots import Snapshots


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Crash):
        fit(compiled(), folder, crash=6)
    return folder


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """The folder of a training that was stopped in the second of its four epochs."""
    return shutil.copytree(stopped_once, tmp_path / "stopped")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a training of one epoch; a refusal leaves it as it is."""
    folder = tmp_path_factory.mktemp("finished")
    fit(compiled(), folder, epochs=1)
    return folder


def with_frozen_bias():
    model = compiled()
    model.weights[1].trainable = False
    return model


def other_features(*batch):
    return features(*batch)


def random_labels(*batch):
    x, y = features(*batch)
    return x, y * tf.random.uniform([])


# Models and settings of `fit` that differ, and what their refusal says.
OTHERS = {
    "loss": ({"loss": "mae"}, {}, "loss.loss was 'mse' and is 'mae'"),
    "optimizer": (
        {"beta_1": 0.5},
        {},
        "optimizer.config.beta_1 was 0.9 and is 0.5",
    ),
    "jit_compile": (
        {"jit": True},
        {},
        "jit_compile was False and is True. .*or another folder to start anew",
    ),
    "learning_rate": (
        {"rate": 0.01},
        {},
        r"learning_rate\[0\] was 0.05 and is 0.01. .*allow_changed=\['optimizer'\]",
    ),
    "model": (
        {"dropout": 0.3},
        {},
        r"model.layers\[1\].config.rate was 0.4 and is 0.3",
    ),
    "metrics": (
        {"metrics": ["mae", "mse"]},
        {},
        r"metrics.metrics was \['mae'\] and is \['mae', 'mse'\]. .*\['metrics'\]",
    ),
    "frozen": (None, {}, r"trainable\[1\] was True and is False. .*or another folder"),
    "epochs": ({}, {"epochs": 5}, r"epochs was 4 and is 5. .*\['epochs'\]"),
    "data": ({}, {"batches": {"seed": 3}}, "data was '.*or another folder"),
    "map": (
        {},
        {"batches": {"change": other_features}},
        "belongs to another training: data was ",
    ),
    "length": (
        {},
        {"batches": {"steps": 3}},
        "data was .*; steps was 4 and is 3. .* anew",
    ),
    "callbacks": (
        {},
        {"callbacks": [AverageCheckpoints()]},
        r"callbacks was \['Stop'\] and is \['Av.* anew",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_training_is_refused_by_difference(stopped, name):
    model, settings, message = OTHERS[name]
    model = with_frozen_bias() if model is None else compiled(**model)
    if "batches" in settings:
        settings = {**settings, "batches": data(**settings["batches"])}
    with pytest.raises(ValueError, match=message):
        fit(model, stopped, **settings)


def test_other_version_is_refused(stopped, monkeypatch):
    monkeypatch.setattr(identity, "__version__", "0.9.0")
    with pytest.raises(ValueError, match="versions.keras_vanilla was .* and is '0.9.0"):
        fit(compiled(), stopped)
    fit(compiled(), stopped, allow_changed=["versions"])


@pytest.mark.parametrize("changed", ["epochs", "learning_rate", "loss"])
def test_finished_training_refuses_differences(finished, changed):
    model, settings, _ = OTHERS[changed]
    with pytest.raises(ValueError, match=f"{changed}.* was "):
        fit(compiled(**model), finished, **{"epochs": 1, **settings})


@pytest.mark.parametrize("crash", [None, pytest.param(3, marks=pytest.mark.full)])
def test_more_epochs_continue_when_they_are_allowed(tmp_path, whole, weights_of, crash):
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


def test_fewer_epochs_than_trained_are_refused(stopped):
    with pytest.raises(ValueError, match="trained more epochs than that, 1"):
        fit(compiled(), stopped, epochs=1, allow_changed=["epochs"])


@pytest.mark.full
def test_more_epochs_do_not_continue_an_early_stop(tmp_path):
    def stopping():
        return [keras.callbacks.EarlyStopping("loss", patience=1, min_delta=1e9)]

    first = fit(compiled(), tmp_path, stopping(), epochs=9)
    allowed = {"allow_changed": ["epochs"]}
    again = fit(compiled(), tmp_path, stopping(), epochs=20, **allowed)
    assert again.epoch == first.epoch and len(again.epoch) < 9


@pytest.mark.full
def test_allowed_metrics_begin_in_the_resumed_epoch(stopped, whole, weights_of):
    again = compiled(seed=2, metrics=["mae", "mse"])
    history = fit(again, stopped, allow_changed=["metrics"]).history
    assert weights_of(again) == whole[1]
    assert len(history["mse"]) == 3
    for name in ("loss", "mae"):
        values = whole[0][name]
        assert history[name][2:] == values[2:]
        assert history[name][0] == values[0] and history[name][1] != values[1]


@pytest.mark.full
def test_allowed_learning_rate_is_the_new_one(stopped):
    model = compiled(rate=0.01)
    fit(model, stopped, allow_changed=["optimizer"])
    assert float(model.optimizer.learning_rate) == np.float32(0.01)
    with pytest.raises(ValueError, match="was 0.01 and is 0.05"):
        fit(compiled(), stopped)


@pytest.mark.full
def test_learning_rate_of_callbacks_is_not_a_difference(tmp_path, weights_of):
    def reducing():
        return [keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=1e9)]

    whole, again = compiled(), compiled()
    fit(whole, tmp_path / "whole", reducing())
    with pytest.raises(Crash):
        fit(again, tmp_path / "run", reducing(), crash=14)
    assert float(again.optimizer.learning_rate) < 0.01
    for model in (again, compiled()):  # in the same process, and in another
        fit(model, tmp_path / "run", reducing())
        assert weights_of(model) == weights_of(whole)
    with pytest.raises(ValueError, match=r"learning_rate\[0\] was 0.05 and is 0.02"):
        fit(compiled(rate=0.02), tmp_path / "run", reducing())


@pytest.mark.parametrize("early", [pytest.param(False, marks=pytest.mark.full), True])
def test_finished_training_is_restored_without_steps(tmp_path, weights_of, early):
    def stopping():
        if not early:
            return []
        return [keras.callbacks.EarlyStopping("loss", patience=1, min_delta=1e9)]

    first, model = compiled(), compiled(seed=2)
    history = fit(first, tmp_path, stopping())
    assert fit(model, tmp_path, stopping()).history == history.history
    assert weights_of(model) == weights_of(first)
    steps = int(model.optimizer.iterations)
    assert model.fit(validation(), epochs=2, verbose=0).epoch == [0, 1]
    assert int(model.optimizer.iterations) == steps + 8


def test_resumed_training_is_described_in_one_line(tmp_path, capsys):
    for crash in (6, 0, 0):
        try:
            fit(compiled(), tmp_path, crash=crash, verbose=2)
        except Crash:
            pass
    lines = [each for each in capsys.readouterr().out.splitlines() if ".npz" in each]
    path = Snapshots(tmp_path).path
    assert lines == [
        f"Resumed from {path(6)}: epoch 2 of 4, step 6.",
        f"{path(16)}: this training is finished, after epoch 4, step 16.",
    ]
    fit(compiled(), tmp_path)  # verbose=0
    assert not capsys.readouterr().out


@pytest.mark.full
def test_early_stop_is_described(tmp_path, capsys):
    stopping = keras.callbacks.EarlyStopping("loss", patience=1, min_delta=1e9)
    for verbose in (0, 2):
        fit(compiled(), tmp_path, [stopping], verbose=verbose)
    assert "a callback stopped this training after epoch 2" in capsys.readouterr().out


@pytest.mark.full
def test_stop_within_an_epoch_lasts(tmp_path, weights_of):
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


def test_differences_name_each_value():
    before = {"a": {"b": [1, 2.5], "c": "x"}, "d": None}
    now = {"a": {"b": [1, 3.5], "c": "x"}, "d": [1, 2], "e": "y" * 80}
    assert list(identity.differences(before, now)) == [
        "a.b[1] was 2.5 and is 3.5",
        "d was None and is [1, 2]",
        f"e was None and is 'yyyy{'y' * 52}...",
    ]


def test_precision_is_part_of_a_model():
    names = []
    for dtype in ("float32", "mixed_bfloat16"):
        model = keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(2, dtype=dtype)]
        )
        names.append(identity.settings_of(model.get_config))
    assert list(identity.differences(*names)) == [
        "layers[1].config.dtype.config.name was 'float32' and is 'mixed_bfloat16'"
    ]


def test_snapshots_of_another_model_are_refused(tmp_path):
    fit(compiled(), tmp_path, epochs=1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"another training: .*model\.layers was"):
        fit(model, tmp_path, epochs=1)
    with pytest.raises(ValueError, match="another model or optimizer: its .* variab"):
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
    ],
    ids=["dataset", "list", "of batches", "not shuffled", "random map"],
)
def test_data_that_cannot_begin_at_any_step_are_refused(
    tmp_path, others, error, message
):
    tf.random.set_seed(None)  # a seed gives each pass the same numbers
    with pytest.raises(error, match=message):
        fit(compiled(), tmp_path / "run", batches=others())
    with pytest.raises(ValueError, match="steps_per_execution=3, 4 batches"):
        fit(compiled(steps=3), tmp_path / "run")
    assert not (tmp_path / "run").exists()
