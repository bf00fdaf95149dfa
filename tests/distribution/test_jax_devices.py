"""Training on several JAX devices, and in several processes, is training on one."""

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from child_process import environment

from keras_vanilla.distribution import replicas

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
IN_ONE = ("single", "mirrored", "mirrored+per-replica-mean")
IN_TWO = ("multi-worker",)
DEADLINE = 900  # seconds; far more than it takes

if importlib.util.find_spec("jax") is None:
    pytest.skip("jax is not installed", allow_module_level=True)


@contextlib.contextmanager
def started(*arguments, devices, **variables):
    """A Python process with so many JAX devices, ended whatever happens."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    flags = f"{os.environ['XLA_FLAGS']} {flags}"
    with tempfile.TemporaryFile("w+") as log:  # a pipe that is full would stop it
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            env=environment("jax", XLA_FLAGS=flags, **variables),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield process, log
        finally:
            process.kill()
            process.wait()


def ended(process, log):
    code = process.wait(DEADLINE)
    log.seek(0)
    assert code == 0, log.read()[-4000:]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What the worker keeps of each run, and the folder it is in."""
    folder = tmp_path_factory.mktemp("runs")
    worker = HERE / "jax_worker.py"
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    together = {
        "KERAS_DISTRIBUTION_JOB_ADDRESSES": address,
        "KERAS_DISTRIBUTION_NUM_PROCESSES": "2",
    }
    with contextlib.ExitStack() as running:
        alone = started(worker, folder, *IN_ONE, devices=2)
        processes = [running.enter_context(alone)]
        for number in "01":
            together["KERAS_DISTRIBUTION_PROCESS_ID"] = number
            process = started(worker, folder, *IN_TWO, devices=1, **together)
            processes.append(running.enter_context(process))
        for process in processes:
            ended(*process)
    return {path.stem: dict(np.load(path)) for path in folder.glob("*.npz")}, folder


def difference(run, reference):
    """The largest difference of a weight, over the largest movement of one."""
    names = [name for name in reference if name.startswith("after/")]
    moved = max(
        np.abs(reference[name] - reference[name.replace("after/", "before/")]).max()
        for name in names
    )
    assert moved > 0.3
    return max(np.abs(run[name] - reference[name]).max() for name in names) / moved


@pytest.mark.parametrize("name", ["mirrored-0", "multi-worker-0", "multi-worker-1"])
def test_several_devices_train_what_one_trains(name, runs):
    run, reference = runs[0][name], runs[0]["single-0"]
    assert difference(run, reference) < 1e-3
    for shown in (key for key in reference if key.startswith("shown/")):
        np.testing.assert_allclose(run[shown], reference[shown], rtol=1e-5)


def test_mean_of_each_replica_would_show(runs):
    mistaken = runs[0]["mirrored+per-replica-mean-0"]
    assert difference(mistaken, runs[0]["single-0"]) > 1e-2


def test_two_processes_read_each_pair_once(runs):
    first, second, alone = (
        runs[0][name]["read/labels"]
        for name in ("multi-worker-0", "multi-worker-1", "single-0")
    )
    for batch in zip(first, second, alone, strict=True):
        one, other, both = (rows[rows.any(axis=1)].tolist() for rows in batch)
        assert one + other == both


@pytest.mark.parametrize("name", ["mirrored", "multi-worker"])
def test_process_0_saves_whole_model(name, runs):
    found, folder = runs
    model = keras.models.load_model(folder / f"{name}.keras", compile=False)
    for weight in model.weights:
        np.testing.assert_array_equal(
            weight.numpy(), found[f"{name}-0"][f"after/{weight.path}"]
        )


def test_one_process_has_four_devices():
    settings = ("-q", "--noconftest", "-p", "no:cacheprovider")
    arguments = ("-m", "pytest", *settings, HERE / "jax_on_four_devices.py")
    with started(*arguments, devices=4) as process:
        ended(*process)


@pytest.mark.parametrize(
    "processes_of_devices", [[0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1]], ids=str
)
def test_uneven_replicas_are_refused(processes_of_devices, monkeypatch):
    devices = [SimpleNamespace(process_index=i) for i in processes_of_devices]
    mesh = SimpleNamespace(devices=np.array(devices), axis_names=("batch",))
    made = SimpleNamespace(
        batch_dim_name="batch", device_mesh=SimpleNamespace(backend_mesh=mesh)
    )
    monkeypatch.setattr(keras.distribution, "distribution", lambda: made)
    with pytest.raises(
        ValueError, match="the same number of replicas, with consecutive"
    ):
        replicas._of_keras()
