"""Two processes of TensorFlow, talking to each other over loopback."""

import numpy as np
import pytest
from strategy_worker import EPOCHS, STEPS, distance
from worker_processes import run_workers

pytestmark = pytest.mark.full

WORKERS = {"strategy": "multi-worker"}
SHORT = {**WORKERS, "validated": False}


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    runs = {
        "trained": WORKERS,
        "plain model": {**SHORT, "plain_model": True},
        "stock build": {**SHORT, "stock": "_maybe_symbolic_build"},
        "stock reduction": {
            **SHORT,
            "stock": "reduce_per_replica",
            "plain_model": True,  # `Transformer.fit` would override it again
        },
    }
    return run_workers(tmp_path_factory.mktemp("workers"), runs)


def test_two_workers_train_what_one_device_trains(workers, one_device):
    for worker in workers:
        assert distance(worker["trained"], one_device) <= 1e-3
        assert worker["trained"]["iterations"] == STEPS * EPOCHS == 26


def test_every_worker_shows_what_one_device_shows(workers, one_device):
    for name, expected in one_device.items():
        if name.startswith("history/"):
            for worker in workers:
                found = worker["trained"][name]
                np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=name)


def test_so_does_a_keras_model_of_the_same_layers(workers, one_device):
    for worker in workers:
        assert distance(worker["plain model"], one_device) <= 1e-3


@pytest.mark.parametrize(
    ("run", "error"),
    [("stock build", "Attempt to convert a value"), ("stock reduction", "dimension 0")],
)
def test_keras_itself_still_cannot(run, error, workers):
    """When this fails, an override of `tensorflow_overrides` may go."""
    for worker in workers:
        assert error in str(worker[run]["error"])
