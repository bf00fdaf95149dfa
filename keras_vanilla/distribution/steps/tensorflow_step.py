"""A training and a test step on TensorFlow: micro-batches, and one sum over replicas.

Every replica holds some rows of the batch, and its loss and gradients are shares of the
whole batch's: they are summed, once, before they are shown, clipped or applied.
"""

import keras
import tensorflow as tf

from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.refusals import (
    refuse_micro_batches_where_they_fail,
    refuse_moving_shapes_on_tpu,
    refuse_what_cannot_work,
)


def train_step(model, data, micro_batches):
    """One update of a model by a batch, or by one replica's rows of it.

    Args:
        model: compiled keras.Model.
        data: (inputs, labels, weights).
        micro_batches: int. Parts of the batch to go through one after the other.
    Returns:
        Dict of the metrics' values.
    Raises:
        ValueError: if it was made or compiled in a way that cannot work.
        tf.errors.InvalidArgumentError: if the weights of a batch do not sum to 1 over
            the replicas.
    """
    keras_internals.install()  # where `tf.distribute` was entered without us
    refuse_what_cannot_work(model)
    refuse_micro_batches_where_they_fail(model, micro_batches)
    refuse_moving_shapes_on_tpu(model, data)
    variables = model.trainable_weights
    if micro_batches == 1:
        loss, gradients = _loss_and_gradients(model, variables, data)
    else:
        loss, gradients = _over_parts(model, variables, data, micro_batches)
    gradients = _as_clipping_takes(gradients, model.optimizer)
    weight = tf.reduce_sum(tf.cast(data[2], tf.float32))
    weight, loss, *gradients = _summed([weight, loss, *gradients])
    _refuse_other_than_one(weight)
    _show(loss, model, data[2])
    with keras_internals.gradients_come_summed(model.optimizer):
        model.optimizer.apply(gradients, variables)
    return model.get_metrics_result()


def test_step(model, data):
    """The metrics' values after a batch, or after one replica's rows of it."""
    inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
    logits = model(inputs, training=False)
    loss = model.compute_loss(inputs, labels, logits, weights, training=False)
    _show(*_summed([loss]), model, weights)
    return model.compute_metrics(inputs, labels, logits, weights)


def _loss_and_gradients(model, variables, data):
    inputs, labels, weights = data
    with tf.GradientTape() as tape:
        logits = model(inputs, training=True)
        loss = model.compute_loss(inputs, labels, logits, weights, training=True)
        scaled = model.optimizer.scale_loss(loss)
    model.compute_metrics(inputs, labels, logits, weights)
    return loss, tape.gradient(scaled, variables)


def _over_parts(model, variables, data, count):
    """Sums over parts of the rows, in a loop: one part's tensors at a time."""
    height = tf.shape(data[1])[0]
    count = tf.minimum(count, height)

    def add(number, loss, gradients):
        chosen = tf.range(number, height, count)
        part = tf.nest.map_structure(lambda rows: tf.gather(rows, chosen), data)
        more_loss, more = _loss_and_gradients(model, variables, part)
        sums = [
            one if other is None else one + other
            for one, other in zip(gradients, more, strict=True)
        ]
        return number + 1, loss + more_loss, sums

    nothing = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
    _, loss, gradients = tf.while_loop(
        lambda number, *_: number < count,
        add,
        (0, tf.zeros(()), nothing),
        parallel_iterations=1,
    )
    return loss, gradients


def _summed(values):
    """Each value's sum over all replicas; None where there is None."""
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return values
    found = [value for value in values if value is not None]
    sums = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, found))
    return [value if value is None else next(sums) for value in values]


def _refuse_other_than_one(weight):
    """Weights of each replica's own, or rows of different batches, show here."""
    if tf.distribute.get_strategy().num_replicas_in_sync > 1:
        tf.debugging.assert_near(
            weight,
            1.0,
            rtol=0.0,
            atol=1e-3,
            message="The weights of a batch must sum to 1 over all replicas, as those "
            "of `batches` do",
        )


def _as_clipping_takes(gradients, optimizer):
    """Dense where they are clipped.

    Of an embedding's gradient Keras takes the norm before the rows of one token are
    added up, which depends on how the batch is split.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if not (optimizer.clipnorm or optimizer.global_clipnorm or optimizer.clipvalue):
        return gradients
    return [None if one is None else tf.convert_to_tensor(one) for one in gradients]


def _show(loss, model, weights):
    """Adds the batch's loss to its mean, weighed by rows as Keras does.

    Each replica adds the whole batch's, weighed by its own rows. Those that only fill a
    batch up do not count: there are more on more replicas.
    """
    real = tf.reduce_any(weights > 0, axis=1)
    rows = tf.reduce_sum(tf.cast(real, tf.float32))
    model._loss_tracker.update_state(loss, sample_weight=rows)
