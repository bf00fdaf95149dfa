import json

import numpy as np
import pytest
import tensorflow as tf
from strategy_worker import DEFAULTS, EPOCHS, STEPS, data, distance, trained
from worker_processes import run_apart

from keras_vanilla.distribution import strategies, strategy

CLIPPED = {"optimizer": {"global_clipnorm": 0.3}, "model": {"share_embeddings": False}}
SHORT_CLIPPED = {**CLIPPED, "validated": False}
KERAS_LOSSES = {
    "ignored label": {
        "reduction": "sum_over_batch_size",
        "ignored": 0,
        "weights_times": None,
    },
    "mean of weights": {
        "reduction": "mean_with_sample_weight",
        "weights_times": "position",
        "validated": False,
    },
}
TRAINED = {
    "mirrored": {},
    "mean of each replica": {
        "stock_step": True,
        "own_share": False,
        "validated": False,
    },
    "weights per pair, step of Keras": {
        "weights_times": "pairs",
        "stock_step": True,
        "validated": False,
    },
    "no weights": {"weights_times": None, "validated": False},
    **KERAS_LOSSES,
    "clipped": {**SHORT_CLIPPED, "micro_batches": 3, "outside": ["data"]},
    "clipped by Keras": {**SHORT_CLIPPED, "stock_step": True},
}
REFUSED = {
    "XLA": (
        {"compile": {"jit_compile": True}},
        "cannot train with `jit_compile=True` on 2 replicas",
    ),
    "several steps": (
        {"compile": {"steps_per_execution": 2}},
        "Received: steps_per_execution=2",
    ),
    "accumulation": (
        {"optimizer": {"gradient_accumulation_steps": 3}},
        "Use `Transformer.compile(micro_batches=...)`. "
        "Received: gradient_accumulation_steps=3",
    ),
    "optimizer outside": (
        {"outside": ["optimizer"]},
        "its schedule would run 2 times too fast",
    ),
    "model outside": (
        {"outside": ["model"]},
        "The model was made outside the strategy's scope",
    ),
    "loss scaling, optimizer outside": (
        {"outside": ["optimizer"], "model": {"dtype": "mixed_float16"}},
        "its schedule would run 2 times too fast",
    ),
}


@pytest.fixture(scope="module")
def two_devices(tmp_path_factory):
    """Runs under Mirrored on two logical CPU devices."""
    refused = {name: options for name, (options, _) in REFUSED.items()}
    runs = {
        name: {"strategy": "mirrored", **options}
        for name, options in {**TRAINED, **refused}.items()
    }
    return run_apart(tmp_path_factory.mktemp("mirrored"), runs, devices=2, processes=1)


def assert_same_shown(found, expected):
    names = {name for name in expected if name.startswith("history/")}
    assert {"history/loss", "history/token_accuracy"} < names
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, err_msg=name)


def test_batches_are_uneven():
    train, _ = data(DEFAULTS)
    labels = [labels.numpy() for _, labels, _ in train.dataset().take(STEPS)]
    assert any(len(rows) % 2 for rows in labels) and 1 in map(len, labels)
    halves = [np.array_split((rows != 0).sum(1), 2) for rows in labels]
    assert any(one.sum() > 1.2 * other.sum() > 0 for one, other in halves)


@pytest.mark.full
def test_two_devices_train_what_one_trains(two_devices, one_device):
    found = two_devices["mirrored"]
    assert distance(found, one_device) <= 1e-3
    assert distance(two_devices["mean of each replica"], one_device) >= 1e-2
    for run in (found, two_devices["clipped"], one_device):
        assert run["iterations"] == STEPS * EPOCHS == 26
    assert "history/val_token_accuracy" in one_device
    assert_same_shown(found, one_device)


@pytest.mark.full
def test_weights_per_pair_and_no_weights_train_the_same(two_devices, one_device):
    by_keras = two_devices["weights per pair, step of Keras"]
    assert distance(by_keras, two_devices["mirrored"]) <= 1e-6
    found = two_devices["no weights"]
    assert distance(found, one_device) <= 1e-3
    shown, expected = (each["history/loss"] for each in (found, one_device))
    np.testing.assert_allclose(shown, expected, rtol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize("name", KERAS_LOSSES)
def test_two_devices_train_by_loss_of_keras_what_one_trains(name, two_devices):
    expected = trained(**KERAS_LOSSES[name])
    assert distance(two_devices[name], expected) <= 1e-3
    for shown in (each for each in expected if each.startswith("history/")):
        np.testing.assert_allclose(
            two_devices[name][shown], expected[shown], rtol=1e-4, err_msg=shown
        )


@pytest.mark.full
def test_clipping_sees_whole_batch(two_devices):
    expected = trained(**SHORT_CLIPPED)
    assert distance(two_devices["clipped"], expected) <= 1e-3
    assert_same_shown(two_devices["clipped"], expected)
    assert distance(two_devices["clipped by Keras"], expected) >= 1e-2


@pytest.mark.full
@pytest.mark.parametrize(
    "settings", [{"strategy": "single"}, {"stock_step": True, "validated": False}]
)
def test_one_device_trains_bit_for_bit_as_keras(settings, one_device):
    for name, value in trained(**settings).items():
        if not name.startswith("history/") or "strategy" in settings:
            np.testing.assert_array_equal(one_device[name], value, err_msg=name)


@pytest.mark.full
@pytest.mark.parametrize("run", REFUSED)
def test_several_devices_are_refused(run, two_devices):
    assert REFUSED[run][1] in str(two_devices[run]["error"])


@pytest.mark.parametrize("name", ["auto", "single"])
def test_one_device_is_default_strategy(name, monkeypatch):
    """Datasets of another one are generators, which slow every later step."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with strategy(name) as chosen:
        assert not tf.distribute.has_strategy()
    assert chosen is tf.distribute.get_strategy()
    with strategies._of_torch(name):
        pass


@pytest.mark.parametrize(
    ("gpus", "environment", "expected"),
    [
        (1, {}, "single"),
        (2, {}, "mirrored"),
        (2, {"TF_CONFIG": 2}, "multi-worker"),
        (2, {"TF_CONFIG": 1}, "mirrored"),
        (0, {"TPU_NAME": "local"}, "tpu"),
    ],
)
def test_auto_takes_what_there_is(gpus, environment, expected, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * gpus)
    for name in ("TF_CONFIG", "TPU_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value if name == "TPU_NAME" else tf_config(value))
    assert strategies._chosen() == expected


def tf_config(workers, **task):
    cluster = {"worker": [f"localhost:{port}" for port in range(2222, 2222 + workers)]}
    return json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": 0, **task}}
    )


def test_other_errors_are_raised_unchanged(monkeypatch):
    def fail():
        raise RuntimeError("no network")

    monkeypatch.setenv("TF_CONFIG", tf_config(2))
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", fail)
    with pytest.raises(RuntimeError, match="no network"):
        with strategy("multi-worker"):
            pass
