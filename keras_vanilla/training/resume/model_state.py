"""All that a model's training continues from, wherever the backend keeps it."""

from collections.abc import Iterable

import keras
import numpy as np
from keras import ops

from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.replicas import Replicas, replicas_in_force


def replicas_of(model: keras.Model) -> Replicas:
    """The replicas that train a model, also after its strategy's scope was left."""
    if keras.backend.backend() != "tensorflow":
        return replicas_in_force()
    with model.distribute_strategy.scope():
        return replicas_in_force()


def build(model: keras.Model, data: Iterable) -> None:
    """Makes the variables that TensorFlow would make in the first step.

    Those of the optimizer, of the metrics and of the losses of single outputs.

    Args:
        model: compiled keras.Model.
        data: iterable of batches.
    """
    if keras.backend.backend() != "tensorflow" or _is_built(model):
        return
    batch = next(iter(data))
    if replicas_of(model).count > 1:  # where metrics are updated inside a step only
        keras_internals.build_on_replicas(model, batch)
        return
    inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(batch)
    outputs = model(inputs, training=False)
    model.compute_loss(inputs, labels, outputs, weights, training=False)
    model.compute_metrics(inputs, labels, outputs, weights)
    model.reset_metrics()
    model.optimizer.build(model.trainable_variables)


def _is_built(model):
    # Metrics of the user's need not be Keras's.
    built = [getattr(metric, "built", True) for metric in model.metrics]
    return model.optimizer.built and all(built)


def values(model: keras.Model) -> list[np.ndarray]:
    """The value of every variable but the metrics': weights, seeds and optimizer.

    They are copies. Each of several processes must call this: a value may be spread
    over all of them.
    """
    return _copies(model, _variables(model))


def metric_values(model: keras.Model) -> list[np.ndarray]:
    """The value of every variable of a metric, as `values` returns the others."""
    return _copies(model, model.metrics_variables)


def shapes(model: keras.Model) -> list[tuple[int, ...]]:
    """The shapes of `values`."""
    return [tuple(each.shape) for each in _variables(model)]


def restore(model: keras.Model, saved: list[np.ndarray]) -> None:
    """Gives every variable its value of `values` back."""
    for variable, value in zip(_variables(model), saved, strict=True):
        variable.assign(value)


def restore_metrics(model: keras.Model, saved: list[np.ndarray]) -> None:
    """Gives every metric its values of `metric_values` back."""
    for variable, value in zip(model.metrics_variables, saved, strict=True):
        variable.assign(value)


def set_history(model: keras.Model, epochs: list[int], values: dict) -> None:
    """Gives the epochs before to Keras's `History`, which begins anew in every `fit`.

    Args:
        model: keras.Model whose `fit` runs.
        epochs: list of the numbers of the epochs.
        values: dict of each metric's values, one for each epoch.
    """
    model.history.epoch = list(epochs)
    model.history.history = {name: list(each) for name, each in values.items()}


def random_state() -> list[np.ndarray] | None:
    """The state of PyTorch's generators, which its dropout draws from; else None."""
    if keras.backend.backend() != "torch":
        return None
    import torch

    states = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    return [state.cpu().numpy() for state in states]


def restore_random_state(saved: list[np.ndarray] | None) -> None:
    """Gives the generators the state of `random_state` back."""
    if saved is None:
        return
    import torch

    first, *of_gpus = (torch.from_numpy(state.copy()) for state in saved)
    torch.set_rng_state(first)
    torch.cuda.set_rng_state_all(of_gpus)


def _copies(model, variables):
    if keras.backend.backend() == "jax":
        model.jax_state_sync()  # during a step the values are not in the variables
    return [_copy(each) for each in variables]


def _copy(variable):
    value = ops.convert_to_numpy(variable)
    return value if value.flags.owndata else value.copy()  # PyTorch's is the variable


def _variables(model):
    return [*model.variables, *model.optimizer.variables]
