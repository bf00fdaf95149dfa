"""Training and test steps on several devices and in micro-batches, for each backend.

A step processes its batch in parts, which are the rows of a replica or a micro-batch of
these. The loss and gradients of a part are its share of those of the whole batch
(`loss_share.py`). The shares are summed, so the number of parts never changes the
trained weights.
"""

import contextlib
import importlib
from typing import Any

import keras

from keras_vanilla.distribution import keras_internals


def train_step(model: keras.Model, micro_batches: int, *state_and_data) -> Any:
    """Makes one update of a model on the current backend.

    Args:
        model: compiled Transformer.
        micro_batches: int. Number of parts of a batch that are computed one after the
            other.
        state_and_data: the arguments of `model.train_step`.
    Returns:
        The result of `model.train_step`.
    Raises:
        ValueError: if layers add losses and there are micro-batches.
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


def build_optimizer(model: keras.Model) -> None:
    """Creates the optimizer's variables before the first step.

    TensorFlow traces a step twice if variables are created inside it. On several
    devices and on the other backends, Keras creates them before.

    Args:
        model: Transformer; one that is not compiled is left to Keras to refuse.
    """
    if keras.backend.backend() != "tensorflow" or not model.compiled:
        return
    optimizer, strategy = model.optimizer, model.distribute_strategy
    if optimizer and not optimizer.built and strategy.num_replicas_in_sync == 1:
        with strategy.scope():
            optimizer.build(model.trainable_variables)


def test_step(model: keras.Model, *state_and_data) -> Any:
    """Updates the metrics with a batch; arguments and result as in `train_step`."""
    if keras.backend.backend() == "tensorflow":
        from keras_vanilla.distribution.steps import tensorflow_step

        return tensorflow_step.test_step(model, *state_and_data)
    return keras.Model.test_step(model, *state_and_data)


def replica_overrides(model: keras.Model) -> contextlib.AbstractContextManager:
    """Returns the scope of `fit` and `evaluate` on several TensorFlow replicas."""
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    if model.distribute_strategy.num_replicas_in_sync == 1:
        return contextlib.nullcontext()
    return keras_internals.overrides()
