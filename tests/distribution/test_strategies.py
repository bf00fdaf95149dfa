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


def test_the_batches_are_ones_that_could_go_wrong():
    train, _ = data(DEFAULTS)
    labels = [labels.numpy() for _, labels, _ in train.dataset().take(STEPS)]
    assert any(len(rows) % 2 for rows in labels) and 1 in map(len, labels)
    halves = [np.array_split((rows != 0).sum(1), 2) for rows in labels]
    assert any(one.sum() > 1.2 * other.sum() > 0 for one, other in halves)


@pytest.mark.full
def test_two_devices_train_what_one_trains(two_devices, one_device):
    found = two_devices["mirrored"]
    assert distance(found, one_device) <= 1e-3
    assert "history/val_token_accuracy" in one_device
    assert_same_shown(found, one_device)


@pytest.mark.full
def test_two_devices_train_the_same_by_weights_per_pair_and_the_step_of_keras(
    two_devices,
):
    found = two_devices["weights per pair, step of Keras"]
    assert distance(found, two_devices["mirrored"]) <= 1e-6


@pytest.mark.full
def test_two_devices_without_weights_train_the_same(two_devices, one_device):
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
def test_every_device_count_takes_the_same_number_of_steps(two_devices, one_device):
    for name in ("mirrored", "clipped"):
        assert two_devices[name]["iterations"] == one_device["iterations"]
    assert one_device["iterations"] == STEPS * EPOCHS == 26


@pytest.mark.full
def test_a_mean_for_each_replica_would_show(two_devices, one_device):
    assert distance(two_devices["mean of each replica"], one_device) >= 1e-2


@pytest.mark.full
def test_clipping_sees_the_whole_batch_from_micro_batches_of_uneven_rows(two_devices):
    expected = trained(**SHORT_CLIPPED)
    assert distance(two_devices["clipped"], expected) <= 1e-3
    assert_same_shown(two_devices["clipped"], expected)
    assert distance(two_devices["clipped by Keras"], expected) >= 1e-2


@pytest.mark.full
def test_one_device_trains_bit_for_bit_as_without_a_strategy(one_device):
    found = trained(strategy="single")
    for name, value in one_device.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.full
def test_one_device_trains_bit_for_bit_as_by_the_step_of_keras(one_device):
    keras_own = trained(stock_step=True, validated=False)
    for name, value in keras_own.items():
        if not name.startswith("history/"):
            np.testing.assert_array_equal(one_device[name], value, err_msg=name)


@pytest.mark.full
@pytest.mark.parametrize("run", REFUSED)
def test_what_cannot_work_on_several_devices_is_refused(run, two_devices):
    assert REFUSED[run][1] in str(two_devices[run]["error"])


def test_auto_is_one_device_on_a_machine_with_one(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with strategy() as chosen:
        assert tf.distribute.get_strategy() is chosen
    assert chosen.num_replicas_in_sync == 1


def test_one_device_makes_no_generator_datasets():
    """They slow every later step of the process: see `strategies._single`."""
    with strategy("single"):
        assert not tf.distribute.has_strategy()


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
def test_auto_takes_all_there_is(gpus, environment, expected, monkeypatch):
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


def test_an_error_of_another_kind_is_passed_on(monkeypatch):
    def fail():
        raise RuntimeError("no network")

    monkeypatch.setenv("TF_CONFIG", tf_config(2))
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", fail)
    with pytest.raises(RuntimeError, match="no network"):
        with strategy("multi-worker"):
            pass


def test_pytorch_has_one_device():
    with strategies._of_torch("auto"):
        pass
