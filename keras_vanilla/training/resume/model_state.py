"""All that a model's training goes on from, wherever the backend keeps it."""

import keras
from keras import ops

from keras_vanilla.distribution.replicas import replicas_in_force


def build(model, data):
    """Makes the variables that TensorFlow alone would make in the first step."""
    metrics = model._compile_metrics
    built = model.optimizer.built and (metrics is None or metrics.built)
    if keras.backend.backend() == "tensorflow" and not built:
        model._symbolic_build(data_batch=next(iter(data)))


def replicas_of(model):
    """The replicas that train a model; its strategy's scope may have been left."""
    if keras.backend.backend() != "tensorflow":
        return replicas_in_force()
    with model.distribute_strategy.scope():
        return replicas_in_force()


def values(model):
    """The value of every variable: weights, seeds, optimizer, and metrics last.

    Of several processes every one must read: a value may be spread over all of them.
    """
    if keras.backend.backend() == "jax":
        model.jax_state_sync()  # during a step the values are not in the variables
    return [ops.convert_to_numpy(each) for each in _variables(model)]


def shapes(model):
    """The shapes of `values`."""
    return [tuple(each.shape) for each in _variables(model)]


def restore(model, saved):
    """Gives every variable its value of `values` back."""
    for variable, value in zip(_variables(model), saved, strict=True):
        variable.assign(value)


def restore_metrics(model, saved):
    """Gives the metrics alone theirs back."""
    metrics = model.metrics_variables
    for variable, value in zip(metrics, saved[-len(metrics) :], strict=True):
        variable.assign(value)


def random_state():
    """The state of PyTorch's generators, which its dropout draws from; else None."""
    if keras.backend.backend() != "torch":
        return None
    import torch

    states = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    return [state.cpu().numpy() for state in states]


def restore_random_state(saved):
    """Gives the generators the state of `random_state` back."""
    if saved is None:
        return
    import torch

    first, *of_gpus = (torch.from_numpy(state.copy()) for state in saved)
    torch.set_rng_state(first)
    torch.cuda.set_rng_state_all(of_gpus)


def _variables(model):
    return [*model.variables, *model.optimizer.variables, *model.metrics_variables]
