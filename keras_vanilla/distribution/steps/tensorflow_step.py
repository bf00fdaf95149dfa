"""Training and test steps on TensorFlow, with micro-batches and several replicas.

Each replica has some rows of the batch. Losses and gradients of the replicas are summed
once, before they are displayed, clipped or applied.
"""

import keras
import tensorflow as tf

from keras_vanilla.distribution import keras_internals
from keras_vanilla.distribution.refusals import (
    refuse_micro_batches_where_they_fail,
    refuse_unknown_shapes_on_tpu,
    refuse_what_cannot_work,
)
from keras_vanilla.distribution.steps.loss_share import (
    TokenWeighted,
    divided,
    part_shares,
    shares_applied_by_step,
    update_loss_mean,
)


def train_step(model: keras.Model, data: tuple, micro_batches: int) -> dict:
    """Updates a model with a batch, or with one replica's rows of it.

    On one device, without micro-batches, this is Keras's step.

    Args:
        model: compiled keras.Model.
        data: (inputs, labels) or (inputs, labels, weights).
        micro_batches: int. Number of parts of the batch.
    Returns:
        Dict of the metrics' values.
    Raises:
        ValueError: if the model was created or compiled in a way that cannot work.
    """
    refuse_what_cannot_work(model)
    refuse_micro_batches_where_they_fail(model, micro_batches)
    refuse_unknown_shapes_on_tpu(model, data)
    is_keras_step = micro_batches == 1 and _replicas() == 1
    if is_keras_step and not _clips(model.optimizer):
        return keras.Model.train_step(model, data)
    variables = model.trainable_weights
    batch = keras.utils.unpack_x_y_sample_weight(data)
    if micro_batches == 1:
        size = None if is_keras_step else _size(batch)
        *sums, gradients = _loss_and_gradients(model, variables, batch, size)
    else:
        *sums, gradients = _over_micro_batches(model, variables, batch, micro_batches)
    # As tensors: Keras computes the norm of an embedding's gradient before it sums the
    # rows of each token, so that the norm would depend on how a batch is split.
    gradients = [
        each if each is None else tf.convert_to_tensor(each) for each in gradients
    ]
    loss, divisor, *gradients = _summed([*sums, *gradients])
    loss, *gradients = divided([loss, *gradients], divisor)
    update_loss_mean(model, loss, _real_rows(model, *batch[1:]))
    if _replicas() == 1:
        model.optimizer.apply(gradients, variables)
    else:
        with keras_internals.gradients_already_summed(model.optimizer):
            model.optimizer.apply(gradients, variables)
    return model.get_metrics_result()


def test_step(model: keras.Model, data: tuple) -> dict:
    """Returns the metrics' values after a batch, or after one replica's rows of it."""
    if _replicas() == 1:
        return keras.Model.test_step(model, data)
    batch = keras.utils.unpack_x_y_sample_weight(data)
    inputs, labels, weights = batch
    outputs = model(inputs, training=False)
    loss, divisor = _summed(_shared_loss(model, batch, outputs, _size(batch), False))
    rows = _real_rows(model, labels, weights)
    update_loss_mean(model, *divided([loss], divisor), rows)
    return model.compute_metrics(inputs, labels, outputs, weights)


def _size(batch):
    """Number of labels of a batch on all replicas."""
    (size,) = _summed([tf.cast(tf.size(batch[1]), tf.float32)])
    return size


def _loss_and_gradients(model, variables, part, size):
    """Returns a part's loss, its share of the divisor, and the gradients."""
    inputs, labels, weights = part
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        loss, share = _shared_loss(model, part, outputs, size, training=True)
        scaled = model.optimizer.scale_loss(loss)
    model.compute_metrics(inputs, labels, outputs, weights)
    return loss, share, tape.gradient(scaled, variables)


def _shared_loss(model, part, outputs, size, training):
    """Returns a part's loss, and its share of the divisor; see `part_shares`."""
    inputs, labels, weights = part
    with shares_applied_by_step():
        loss = model.compute_loss(inputs, labels, outputs, weights, training=training)
    if size is None:  # the whole batch
        return loss, 1.0
    factor, share = part_shares(model, labels, outputs, weights, size)
    if isinstance(factor, tf.Tensor):  # Keras divides a mean by the number of replicas
        factor *= _replicas()
    return loss * tf.cast(factor, loss.dtype), share


def _over_micro_batches(model, variables, batch, count):
    """Sums over parts of the rows in a loop, with the tensors of one part at a time."""
    height, size = tf.shape(batch[1])[0], _size(batch)
    count = tf.minimum(count, height)

    def add(index, loss, divisor, gradients):
        rows = tf.range(index, height, count)
        part = tf.nest.map_structure(
            lambda values: None if values is None else tf.gather(values, rows), batch
        )
        more_loss, share, more = _loss_and_gradients(model, variables, part, size)
        sums = [
            one if other is None else one + other
            for one, other in zip(gradients, more, strict=True)
        ]
        return index + 1, loss + more_loss, divisor + share, sums

    zeros = [tf.zeros(variable.shape, variable.dtype) for variable in variables]
    _, *sums = tf.while_loop(
        lambda index, *_: index < count,
        add,
        (0, tf.zeros(()), tf.zeros(()), zeros),
        parallel_iterations=1,
    )
    return sums


def _replicas():
    return tf.distribute.get_strategy().num_replicas_in_sync


def _summed(values):
    """Returns each value's sum over all replicas; None values are kept."""
    if _replicas() == 1:
        return values
    present = [value for value in values if value is not None]
    context = tf.distribute.get_replica_context()
    sums = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present))
    return [value if value is None else next(sums) for value in values]


def _clips(optimizer):
    optimizer = keras_internals.unscaled(optimizer)
    return optimizer.clipnorm or optimizer.global_clipnorm or optimizer.clipvalue


def _real_rows(model, labels, weights):
    """Number of rows that count in the loss; others only fill a batch."""
    loss = keras.losses.get(model.loss)
    ignored = getattr(loss, "ignore_class", None)
    if isinstance(loss, TokenWeighted):
        weights = loss.token_weights(labels, weights)
    elif weights is None and ignored is not None:
        weights = tf.cast(tf.not_equal(labels, tf.cast(ignored, labels.dtype)), "int32")
    if weights is None:
        return tf.shape(labels)[0]
    weights = tf.reshape(weights, [tf.shape(weights)[0], -1])
    return tf.reduce_sum(tf.cast(tf.reduce_any(weights > 0, axis=1), tf.float32))
