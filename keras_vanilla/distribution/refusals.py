"""Refuses models that Keras cannot train on TensorFlow, before the first step."""

from typing import Any

import keras
import tensorflow as tf

from keras_vanilla.distribution.keras_internals import unscaled


def refuse_what_cannot_work(model: keras.Model) -> None:
    """Refuses a model that was created or compiled in a way that cannot work.

    Args:
        model: compiled keras.Model, about to be trained.
    Raises:
        ValueError: with the reason and what to use instead.
    """
    if keras.distribution.distribution() is not None:
        raise ValueError(
            "A `keras.distribution` is set, which Keras ignores on the TensorFlow "
            "backend. Use `keras_vanilla.distribution.strategy`, or the JAX backend."
        )
    strategy = model.distribute_strategy
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return
    if model.jit_compile:
        raise ValueError(
            f"Keras cannot train with `jit_compile=True` on {replicas} replicas: "
            "compile the model with `jit_compile=False`."
        )
    if model.steps_per_execution != 1:
        raise ValueError(
            f"Keras cannot train with `steps_per_execution` on {replicas} replicas: "
            "compile the model without. "
            f"Received: steps_per_execution={model.steps_per_execution}"
        )
    _refuse_accumulation(model.optimizer)
    inside = strategy.extended.variable_created_in_scope
    if not all(inside(weight.value) for weight in model.trainable_weights):
        raise ValueError(
            "The model was made outside the strategy's scope, so all replicas would "
            "train the same weights. Make it inside the scope."
        )
    optimizer = unscaled(model.optimizer)
    if not inside(optimizer.iterations.value):
        raise ValueError(
            "The optimizer was made outside the strategy's scope, so its schedule "
            f"would run {replicas} times too fast. Make it, and "
            "compile the model, inside the scope."
        )


def _refuse_accumulation(optimizer):
    steps = unscaled(optimizer).gradient_accumulation_steps
    if steps:
        raise ValueError(
            "Keras cannot accumulate gradients on several replicas, and where it can, "
            "it averages the means of batches, which is wrong where they have "
            "different numbers of tokens. Use "
            "`Transformer.compile(micro_batches=...)`. "
            f"Received: gradient_accumulation_steps={steps}"
        )


def refuse_micro_batches_where_they_fail(model: keras.Model, count: int) -> None:
    """Refuses micro-batches where they cannot work.

    Args:
        model: compiled keras.Model.
        count: int. Number of micro-batches.
    Raises:
        ValueError: with the reason and advice.
    """
    if count == 1:
        return
    on_tpu = isinstance(model.distribute_strategy, tf.distribute.TPUStrategy)
    if model.jit_compile or on_tpu:
        raise ValueError(
            "XLA cannot compile micro-batches, whose sizes differ: compile the model "
            "with `jit_compile=False`, and on TPUs take smaller batches. "
            f"Received: micro_batches={count}"
        )
    _refuse_accumulation(model.optimizer)


def refuse_unknown_shapes_on_tpu(model: keras.Model, data: Any) -> None:
    """Refuses tensors of unknown shape on a TPU, where XLA must compile every shape.

    Args:
        model: compiled keras.Model.
        data: nest of tensors.
    Raises:
        ValueError: if there is such a tensor on a TPU.
    """
    if not isinstance(model.distribute_strategy, tf.distribute.TPUStrategy):
        return
    for tensor in tf.nest.flatten(data):
        if not tensor.shape.is_fully_defined():
            raise ValueError(
                "A TPU needs batches of one shape: make them by `batches(...)` inside "
                "the strategy's scope, which then have one. "
                f"Received: shape={tensor.shape}"
            )
