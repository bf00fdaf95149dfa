"""Fails when Keras changes what the overrides stand on."""

import hashlib
import inspect

import pytest

from keras_vanilla.distribution import keras_internals as tensorflow_overrides

DIGESTS = {
    "TensorFlowTrainer._maybe_symbolic_build": "92a504f5eba9b29f",
    "TensorFlowTrainer.train_step": "debf0efab9d5794b",
    "TensorFlowTrainer.test_step": "a8f04a25512e74e2",
    "reduce_per_replica": "2e7d54b1e6edc29a",
    "TFOptimizer._all_reduce_sum_gradients": "953512efa56c9680",
    "TFOptimizer._backend_update_step": "00bd759c099a6b72",
}


@pytest.mark.parametrize(
    "function", tensorflow_overrides.STANDS_ON, ids=lambda one: one.__qualname__
)
def test_keras_is_what_the_overrides_were_written_for(function):
    source = inspect.getsource(inspect.unwrap(function))
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    assert digest == DIGESTS[function.__qualname__], (
        f"Keras has changed {function.__qualname__}. Read the new one next to "
        "keras_vanilla/training/tensorflow_overrides.py, run test_strategies.py and "
        "test_multi_worker.py, and then put the new digest here."
    )
