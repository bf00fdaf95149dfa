"""All that a model's training continues from, wherever the backend keeps it."""

import json

import keras
import numpy as np
from keras import ops

from keras_vanilla.distribution.replicas import Replicas, replicas_in_force


def replicas_of(model: keras.Model) -> Replicas:
    """The replicas that train a model, also after its strategy's scope was left."""
    if keras.backend.backend() != "tensorflow":
        return replicas_in_force()
    with model.distribute_strategy.scope():
        return replicas_in_force()


def values(model: keras.Model) -> list[np.ndarray]:
    """The value of every variable: weights, seeds, optimizer, and metrics last.

    Each of several processes must call this: a value may be spread over all of them.
    """
    if keras.backend.backend() == "jax":
        model.jax_state_sync()  # during a step the values are not in the variables
    return [ops.convert_to_numpy(each) for each in _variables(model)]


def shapes(model: keras.Model) -> list[tuple[int, ...]]:
    """The shapes of `values`."""
    return [tuple(each.shape) for each in _variables(model)]


def restore(model: keras.Model, saved: list[np.ndarray]) -> None:
    """Gives every variable its value of `values` back."""
    for variable, value in zip(_variables(model), saved, strict=True):
        variable.assign(value)


def restore_metrics(model: keras.Model, saved: list[np.ndarray]) -> None:
    """Gives only the metrics their values back."""
    metrics = model.metrics_variables
    for variable, value in zip(metrics, saved[-len(metrics) :], strict=True):
        variable.assign(value)


def optimizer_settings(optimizer: keras.optimizers.Optimizer) -> dict:
    """The class and settings of an optimizer, as JSON can hold them.

    Without its name, in which Keras counts the optimizers of a process.
    """
    config = keras.optimizers.serialize(optimizer)
    return _without_names(json.loads(json.dumps(config, default=repr)))


def unchanging_settings(optimizer: keras.optimizers.Optimizer) -> dict:
    """`optimizer_settings` without a learning rate that callbacks may change.

    Such a rate is a variable, which `values` holds.
    """
    settings = optimizer_settings(optimizer)
    if isinstance(settings["config"].get("learning_rate"), (int, float)):
        del settings["config"]["learning_rate"]
    return settings


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


def _variables(model):
    return [*model.variables, *model.optimizer.variables, *model.metrics_variables]


def _without_names(settings):
    if not isinstance(settings, dict):
        return settings
    return {
        key: _without_names(value) for key, value in settings.items() if key != "name"
    }
