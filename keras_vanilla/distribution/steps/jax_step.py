"""A training step in micro-batches on JAX."""

import jax
import keras
from jax import numpy as jnp

from keras_vanilla.distribution.jax_devices import refuse_another_scope
from keras_vanilla.distribution.steps.loss_share import (
    divided,
    part_shares,
    update_loss_mean,
)


def train_step(
    model: keras.Model, state: tuple, data: tuple, micro_batches: int
) -> tuple[dict, tuple]:
    """Like `tensorflow_step.train_step`, but the state is passed and returned.

    XLA needs parts of equal size, so the rows that remain are one more part.
    """
    refuse_another_scope(model)
    if micro_batches == 1:
        return keras.Model.train_step(model, state, data)
    batch = keras.utils.unpack_x_y_sample_weight(data)
    trainable, non_trainable, optimizer_variables, metrics = state

    def loss_of_part(trainable, non_trainable, metrics, part):
        loss, (unscaled, outputs, non_trainable, metrics) = (
            model.compute_loss_and_updates(
                trainable,
                non_trainable,
                metrics,
                *part,
                training=True,
                optimizer_variables=optimizer_variables,
            )
        )
        constant = jax.lax.stop_gradient(outputs)
        factor, share = part_shares(
            model, part[1], constant, part[2], float(batch[1].size)
        )
        others = (unscaled * factor, share, outputs, non_trainable, metrics)
        return loss * factor, others

    gradient_of = jax.value_and_grad(loss_of_part, has_aux=True)

    def add(sums, part):
        loss, divisor, gradients, non_trainable, metrics = sums
        (_, (more_loss, share, outputs, non_trainable, metrics)), more = gradient_of(
            trainable, non_trainable, metrics, part
        )
        with _MetricsScope(model, metrics) as scope:
            model.compute_metrics(part[0], part[1], outputs, part[2])
        loss, divisor = loss + more_loss, divisor + share
        gradients = jax.tree.map(jnp.add, gradients, more)
        return (loss, divisor, gradients, non_trainable, scope.values()), None

    zeros = jax.tree.map(jnp.zeros_like, trainable)
    sums = (jnp.zeros(()), jnp.zeros(()), zeros, non_trainable, metrics)
    height = batch[1].shape[0]
    if height >= micro_batches:
        sums, _ = jax.lax.scan(add, sums, _micro_batches(batch, micro_batches))
    if height % micro_batches:
        last = height - height % micro_batches
        sums, _ = add(sums, jax.tree.map(lambda rows: rows[last:], batch))
    loss, divisor, gradients, non_trainable, metrics = sums
    trainable, optimizer_variables = model.optimizer.stateless_apply(
        optimizer_variables, divided(gradients, divisor), trainable
    )
    with _MetricsScope(model, metrics) as scope:
        update_loss_mean(model, *divided([loss], divisor), height)
        logs = model.get_metrics_result()
    return logs, (trainable, non_trainable, optimizer_variables, scope.values())


def _micro_batches(data, count):
    """Reshapes (B, ...) -> (count, B // count, ...); parts take every count-th row."""

    def split(rows):
        rows = rows[: len(rows) - len(rows) % count]
        return jnp.moveaxis(rows.reshape(-1, count, *rows.shape[1:]), 1, 0)

    return jax.tree.map(split, data)


class _MetricsScope(keras.StatelessScope):
    """A scope for values of a model's metrics; `values` has the final ones."""

    def __init__(self, model, values):
        self._variables = model.metrics_variables
        super().__init__(list(zip(self._variables, values, strict=True)))

    def values(self):
        return [self.get_current_value(variable) for variable in self._variables]
