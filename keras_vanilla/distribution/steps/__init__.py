"""Training and test steps on several devices and in micro-batches, a file per backend.

A step sees its batch in parts: the rows of one replica, and of them one micro-batch.
Each part's loss and gradients are its share of the whole batch's (`loss_share.py`), and
shares are summed, so that the number of parts never changes the trained weights.
"""

import contextlib
import importlib
from typing import Any

import keras

from keras_vanilla.distribution import keras_internals


def train_step(model: keras.Model, micro_batches: int, *state_and_data) -> Any:
    """One update of a model, as this backend makes it.

    Args:
        model: compiled Transformer.
        micro_batches: int. Number of parts of a batch that are computed one after the
            other.
        state_and_data: what `model.train_step` is called with.
    Returns:
        What `model.train_step` returns.
    Raises:
        ValueError: if layers have losses of their own and there are micro-batches.
    """
    *state, data = state_and_data
    if micro_batches > 1 and model.losses:
        raise ValueError(
            "Losses of layers, such as regularizers, would be added once per "
            f"micro-batch. Received: micro_batches={micro_batches} and "
            f"{len(model.losses)} losses of layers"
        )
    backend = importlib.import_module(f"{__name__}.{keras.backend.backend()}_step")
    return backend.train_step(model, *state, data, micro_batches)


def test_step(model: keras.Model, *state_and_data) -> Any:
    """The metrics after one more batch; arguments and result as of `train_step`."""
    if keras.backend.backend() == "tensorflow":
        from keras_vanilla.distribution.steps import tensorflow_step

        return tensorflow_step.test_step(model, *state_and_data)
    return keras.Model.test_step(model, *state_and_data)


def replica_overrides(model: keras.Model) -> contextlib.AbstractContextManager:
    """The scope of `fit` and `evaluate` on several TensorFlow replicas."""
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    if model.distribute_strategy.num_replicas_in_sync == 1:
        return contextlib.nullcontext()
    return keras_internals.overrides()
