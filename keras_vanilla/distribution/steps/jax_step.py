"""A training step in micro-batches on JAX."""

import jax
import keras
from jax import numpy as jnp

from keras_vanilla.distribution.jax_devices import refuse_another_scope
from keras_vanilla.distribution.steps.loss_share import (
    divisor,
    loss_weights,
    share,
    update_loss_mean,
)


def train_step(
    model: keras.Model, state: tuple, data: tuple, micro_batches: int
) -> tuple[dict, tuple]:
    """Like `tensorflow_step.train_step`, but the state is passed and returned.

    XLA needs parts of equal size, so rows of padding with weight 0 are added.
    """
    refuse_another_scope(model)
    if micro_batches == 1:
        return keras.Model.train_step(model, state, data)
    inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
    batch_divisor = divisor(model, labels, weights)
    if weights is None:  # the added rows need weights
        weights = loss_weights(model, labels, None)
        weights = jnp.ones(labels.shape, "float32") if weights is None else weights
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
        factor = share(divisor(model, *part[1:]), batch_divisor)
        return loss * factor, (unscaled * factor, outputs, non_trainable, metrics)

    gradient_of = jax.value_and_grad(loss_of_part, has_aux=True)

    def add(sums, part):
        loss, gradients, non_trainable, metrics = sums
        (_, (more_loss, outputs, non_trainable, metrics)), more = gradient_of(
            trainable, non_trainable, metrics, part
        )
        with _MetricsScope(model, metrics) as scope:
            model.compute_metrics(part[0], part[1], outputs, part[2])
        gradients = jax.tree.map(jnp.add, gradients, more)
        return (loss + more_loss, gradients, non_trainable, scope.values()), None

    zeros = jax.tree.map(jnp.zeros_like, trainable)
    sums = (jnp.zeros(()), zeros, non_trainable, metrics)
    parts = _micro_batches((inputs, labels, weights), micro_batches, model.pad_id)
    (loss, gradients, non_trainable, metrics), _ = jax.lax.scan(add, sums, parts)
    trainable, optimizer_variables = model.optimizer.stateless_apply(
        optimizer_variables, gradients, trainable
    )
    with _MetricsScope(model, metrics) as scope:
        update_loss_mean(model, loss, labels.shape[0])
        logs = model.get_metrics_result()
    return logs, (trainable, non_trainable, optimizer_variables, scope.values())


def _micro_batches(data, count, pad_id):
    """Reshapes (B, ...) -> (count, B / count, ...); parts take every count-th row."""

    def split(rows):
        fill = pad_id if jnp.issubdtype(rows.dtype, jnp.integer) else 0
        more = [(0, -rows.shape[0] % count)] + [(0, 0)] * (rows.ndim - 1)
        rows = jnp.pad(rows, more, constant_values=fill)
        return jnp.moveaxis(rows.reshape(-1, count, *rows.shape[1:]), 1, 0)

    return jax.tree.map(split, data)


class _MetricsScope(keras.StatelessScope):
    """A scope for values of a model's metrics; `values` has the final ones."""

    def __init__(self, model, values):
        self._variables = model.metrics_variables
        super().__init__(list(zip(self._variables, values, strict=True)))

    def values(self):
        return [self.get_current_value(variable) for variable in self._variables]
