"""What holds in one process with four JAX devices; `test_jax_devices` runs it."""

import jax
import keras
import numpy as np
import pytest
from models import inputs, make_model

from keras_vanilla.distribution import jax_devices
from keras_vanilla.distribution.jax_devices import distribution
from keras_vanilla.distribution.replicas import Replicas, replicas_in_force
from keras_vanilla.training import SmoothedCrossentropy

EVEN = {"source_vocabulary_size": 38, "num_heads": 2, "d_model": 10, "d_ff": 14}
EVEN |= {"num_encoder_layers": 1, "num_decoder_layers": 1}
ADDRESSES, PROCESSES, PROCESS = (
    f"KERAS_DISTRIBUTION_{name}"
    for name in ("JOB_ADDRESSES", "NUM_PROCESSES", "PROCESS_ID")
)


def fit(model, rows=4, sizes=(5, 3, 7, 2), scale=1.0):
    """One step on rows made by hand, their 0/1 weights times `scale` or no weights."""
    batch = inputs(source_lengths=sizes[:rows], target_lengths=sizes[:rows])
    labels = np.roll(batch["target_ids"], -1, axis=1)
    weights = None if scale is None else (labels != 0).astype("float32") * scale
    model.fit(batch, labels, rows, sample_weight=weights, shuffle=False, verbose=0)


@pytest.mark.parametrize(
    ("name", "replicas"), [("single", 1), ("auto", 1), ("mirrored", 4)]
)
def test_scope_has_its_replicas(name, replicas):
    with distribution(name):
        assert replicas_in_force() == Replicas(replicas, 0, replicas)
    assert keras.distribution.distribution() is None


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_weights_of_any_scale_train_the_same(micro_batches):
    trained = []
    with distribution("mirrored"):
        model = make_model(**EVEN)
        model.compile("sgd", SmoothedCrossentropy(), micro_batches=micro_batches)
        start = model.get_weights()
        for scale in (1.0, 1 / 17, None):
            model.set_weights(start)
            fit(model, scale=scale)
            trained.append(model.get_weights())
    assert not np.array_equal(trained[0][0], start[0])
    for weights in trained[1:]:
        for value, expected in zip(weights, trained[0], strict=True):
            np.testing.assert_allclose(value, expected, atol=1e-6)


def test_outer_scope_is_restored():
    with distribution("mirrored") as outer:
        with distribution("single"):
            assert keras.distribution.distribution() is None
        assert keras.distribution.distribution() is outer


@pytest.mark.parametrize(
    ("backend", "devices", "processes", "name"),
    [
        ("tpu", 8, "1", "tpu"),
        ("gpu", 2, "1", "mirrored"),
        ("gpu", 1, "1", "single"),
        ("gpu", 1, "2", "multi-worker"),
    ],
)
def test_auto_takes_what_there_is(backend, devices, processes, name, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "local_device_count", lambda: devices)
    monkeypatch.setenv(PROCESSES, processes)
    assert jax_devices._best() == name


def test_tpu_host_shares_batches(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with distribution("tpu"):
        assert replicas_in_force() == Replicas(4, 0, 4)


def test_uneven_rows_are_refused():
    with distribution("mirrored"):
        model = make_model()
        model.compile("sgd", SmoothedCrossentropy())
        with pytest.raises(ValueError, match="this process, 4: .* Received: 3 rows"):
            fit(model, rows=3)


TOGETHER = {ADDRESSES: "localhost:1", PROCESSES: "2", PROCESS: "1"}
REFUSED = [
    ("mirrored", None, "'mirrored' needs two .* Received: cpu:0"),
    ("tpu", {}, "needs a TPU .* Received: cpu devices"),
    ("horovod", {}, "'auto', 'single', .*'tpu'. Rec.*'horovod'"),
    ("multi-worker", {}, "Received: no .*ADDRESSES, .*PROCESSES, .*_ID"),
    ("multi-worker", {ADDRESSES: "a:1", PROCESS: "0"}, f"Received: no {PROCESSES}"),
    *(
        ("multi-worker", {**TOGETHER, **changed}, message)
        for changed, message in (
            ({PROCESSES: "two"}, "Received: 'two' and '1'"),
            ({PROCESSES: "1", PROCESS: "0"}, "Received: '1' and '0'"),
            ({PROCESS: "2"}, "Received: '2' and '2'"),
            ({ADDRESSES: "a"}, "host:port.* Received: 'a'"),
            ({ADDRESSES: "a:1,b"}, "Received: 'b'"),
            ({}, "must be entered before JAX computes"),
        )
    ),
]


@pytest.mark.parametrize(("name", "environment", "message"), REFUSED)
def test_strategy_is_refused(name, environment, message, monkeypatch):
    jax.devices()  # JAX has begun
    if environment is None:
        monkeypatch.setattr(jax, "local_devices", lambda: ["cpu:0"])
    for variable, value in (environment or {}).items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=message):
        distribution(name)


def test_other_failures_are_raised_unchanged(monkeypatch):
    def fail():
        raise RuntimeError("no route to host")

    for name, value in TOGETHER.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(keras.distribution, "initialize", fail)
    with pytest.raises(RuntimeError, match="no route to host"):
        distribution("multi-worker")


def test_training_in_another_scope_is_refused():
    with distribution("mirrored"):
        model = make_model(**EVEN)
        model.compile("sgd", SmoothedCrossentropy())
        jax_devices.refuse_another_scope(model)
    with distribution("mirrored"):  # another one of the same devices
        jax_devices.refuse_another_scope(model)
    with pytest.raises(ValueError, match=r"made with Mesh\(.* trained with None"):
        jax_devices.refuse_another_scope(model)


def test_optimizer_from_outside_scope_is_refused():
    optimizer = keras.optimizers.SGD()
    with distribution("mirrored"):
        model = make_model(**EVEN)
        model.compile(optimizer, SmoothedCrossentropy())
        with pytest.raises(ValueError, match="iteration made with None"):
            jax_devices.refuse_another_scope(model)
