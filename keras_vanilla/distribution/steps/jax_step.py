"""A training step in micro-batches on JAX."""

import jax
import keras
from jax import numpy as jnp

from keras_vanilla.distribution.jax_devices import refuse_another_scope


def train_step(model, state, data, micro_batches):
    """As `tensorflow_step.train_step`, without state: that is given and returned.

    XLA needs parts of one size: rows are added to make them, of padding alone.
    """
    refuse_another_scope(model)
    if micro_batches == 1:
        return keras.Model.train_step(model, state, data)
    trainable, non_trainable, optimizer_variables, metrics = state
    gradient_of = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)

    def add(sums, part):
        loss, gradients, non_trainable, metrics = sums
        inputs, labels, weights = part
        (_, (more_loss, logits, non_trainable, metrics)), more = gradient_of(
            trainable,
            non_trainable,
            metrics,
            *part,
            training=True,
            optimizer_variables=optimizer_variables,
        )
        with _metrics_of(model, metrics) as scope:
            model.compute_metrics(inputs, labels, logits, weights)
        gradients = jax.tree.map(jnp.add, gradients, more)
        return (loss + more_loss, gradients, non_trainable, scope.values()), None

    nothing = jax.tree.map(jnp.zeros_like, trainable)
    sums = (jnp.zeros(()), nothing, non_trainable, metrics)
    sums, _ = jax.lax.scan(add, sums, _parts(data, micro_batches, model.pad_id))
    loss, gradients, non_trainable, metrics = sums
    trainable, optimizer_variables = model.optimizer.stateless_apply(
        optimizer_variables, gradients, trainable
    )
    with _metrics_of(model, metrics) as scope:
        model._loss_tracker.update_state(loss, sample_weight=data[1].shape[0])
        logs = model.get_metrics_result()
    return logs, (trainable, non_trainable, optimizer_variables, scope.values())


def _parts(data, count, pad_id):
    """Rows (B, ...) -> (count, B / count, ...): each part takes every count-th."""

    def split(rows):
        fill = pad_id if jnp.issubdtype(rows.dtype, jnp.integer) else 0
        more = [(0, -rows.shape[0] % count)] + [(0, 0)] * (rows.ndim - 1)
        rows = jnp.pad(rows, more, constant_values=fill)
        return jnp.moveaxis(rows.reshape(-1, count, *rows.shape[1:]), 1, 0)

    return jax.tree.map(split, data)


class _metrics_of(keras.StatelessScope):
    """A scope with these values of a model's metrics; `values` are those at its end."""

    def __init__(self, model, values):
        self._variables = model.metrics_variables
        super().__init__(list(zip(self._variables, values, strict=True)))

    def values(self):
        return [self.get_current_value(variable) for variable in self._variables]
