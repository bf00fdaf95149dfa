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
        for name in (each for each in one_device if each.startswith("history/")):
            np.testing.assert_allclose(
                worker["trained"][name], one_device[name], rtol=1e-5, err_msg=name
            )


@pytest.mark.parametrize(
    ("run", "error"),
    [("stock build", "Attempt to convert a value"), ("stock reduction", "dimension 0")],
)
def test_keras_itself_still_cannot(run, error, workers):
    """When this fails, an override of `tensorflow_overrides` may go."""
    for worker in workers:
        assert error in str(worker[run]["error"])
