"""The same weights give the same numbers on every backend, without TensorFlow too."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from child_process import run

pytestmark = pytest.mark.full

PROBE = Path(__file__).with_name("backend_probe.py")
JAX_PYTHON = os.environ.get("KERAS_VANILLA_JAX_PYTHON")


def probe(folder, backend, *arguments, python=sys.executable):
    path = folder / f"{backend}.npz"
    run(PROBE, path, *arguments, python=python, backend=backend)
    results = dict(np.load(path))
    assert results.pop("backend") == backend
    return results


def assert_same(results, expected):
    assert results.keys() == expected.keys()
    for name, value in expected.items():
        assert np.isfinite(value).all(), name
        exact = name.startswith(("ids/", "weights/"))
        tolerance = 0 if exact else 1e-4
        np.testing.assert_allclose(
            results[name], value, rtol=0, atol=tolerance, err_msg=name
        )


@pytest.fixture(scope="module")
def tensorflow(tmp_path_factory):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed: there is nothing to compare with")
    return probe(tmp_path_factory.mktemp("tensorflow"), "tensorflow")


def test_probe_moves_every_weight(tensorflow):
    names = [name for name in tensorflow if name.startswith("weights/")]
    assert names
    for name in names:
        moved = tensorflow[name.replace("weights/", "trained/")] - tensorflow[name]
        assert np.abs(moved).max() > 1e-3 or name.endswith("key/bias"), name
    for name in ("ids/greedy", "ids/beam/compiled", "ids/sample"):
        assert len(np.unique(tensorflow[name])) > 3
    assert tensorflow["ids/seeds"].all()


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_backend_agrees_without_tensorflow(backend, tensorflow, tmp_path):
    """JAX in an environment that never had it, if there is one; else it is hidden."""
    if backend == "jax" and JAX_PYTHON:
        command = [JAX_PYTHON, "-c", "import tensorflow"]
        done = subprocess.run(command, capture_output=True)
        assert b"ModuleNotFoundError" in done.stderr
        results = probe(tmp_path, backend, python=JAX_PYTHON)
    elif importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    else:
        results = probe(tmp_path, backend, "--without-tensorflow")
    assert_same(results, tensorflow)
