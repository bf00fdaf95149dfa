"""The share of a part of a batch in the loss of the whole batch."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import keras
from keras import ops

from keras_vanilla._types import Tensor
from keras_vanilla.distribution import keras_internals


@runtime_checkable
class TokenWeighted(Protocol):
    """A loss that is a mean over tokens, such as `SmoothedCrossentropy`."""

    def token_weights(self, labels: Tensor, sample_weight: Tensor | None) -> Tensor:
        """The weight of each token, float32 (B, T), for labels (B, T)."""


def token_weights(labels: Tensor, sample_weight: Tensor | None, pad_id: int) -> Tensor:
    """Returns the weight of each token.

    Weights (B, T) are not changed. A weight per pair applies to all its labels except
    padding. Without weights, each label except padding has weight 1.

    Args:
        labels: int tensor (B, T).
        sample_weight: tensor (B, T), one weight per label; (B,) or (B, 1), one per
            pair; or None.
        pad_id: int. Label of padding.
    Returns:
        Float32 tensor (B, T).
    Raises:
        ValueError: if `sample_weight` has another shape.
    """
    labels = ops.cast(labels, "int32")
    real = ops.cast(ops.not_equal(labels, pad_id), "float32")
    if sample_weight is None:
        return real
    weights = ops.cast(sample_weight, "float32")
    shape = weights.shape
    if getattr(shape, "rank", 2) is None or tuple(shape[1:]) == (None,):
        # Traced with both shapes, or without the number of columns.
        weights = ops.reshape(weights, (ops.shape(labels)[0], -1))
        return ops.where(ops.shape(weights)[1] == 1, weights * real, weights)
    if not are_per_pair(weights.shape, labels.shape):
        return weights
    return ops.reshape(weights, (-1, 1)) * real


def are_per_pair(shape: Sequence[int | None], labels: Sequence[int | None]) -> bool:
    """Returns True for weights per pair, (B,) or (B, 1), and False for (B, T).

    Args:
        shape: shape of the weights, with None for unknown sizes.
        labels: shape of the labels.
    Raises:
        ValueError: if the weights have another shape.
    """
    shape, labels = tuple(shape), tuple(labels)

    def is_like(expected):
        pairs = zip(shape, expected, strict=False)
        return len(shape) == len(expected) and all(
            None in (one, other) or one == other for one, other in pairs
        )

    if len(labels) == 2 and (is_like(labels[:1]) or is_like((labels[0], 1))):
        return shape != labels
    if is_like(labels):
        return False
    raise ValueError(
        "`sample_weight` must have the shape of the labels, (B, T), or a weight per "
        f"pair, (B,). Received: shape {shape}, and labels of shape {labels}"
    )


def part_shares(
    model: keras.Model,
    labels: Tensor,
    outputs: Tensor,
    weights: Tensor | None,
    size: Tensor | float,
) -> tuple[Tensor | float, Tensor]:
    """Returns the factor of a part's loss, and the part's share of the divisor.

    The loss of a batch is the sum of its parts' losses, each multiplied by its factor,
    divided by the sum of their shares. For a mean, both are what the loss of the part
    is divided by: the weights of its tokens, or the values that its mask leaves.

    Args:
        model: compiled keras.Model with one loss.
        labels: tensor (B, ...) of the part.
        outputs: tensor (B, ...) of the part, of which no gradient is taken.
        weights: tensor (B, ...) of sample weights, or None.
        size: float. Number of labels of the batch, so that shares are near 1.
    Raises:
        ValueError: if the loss is not the sum or a mean of one value per label or row.
    """
    loss = keras.losses.get(model.loss)
    if isinstance(loss, TokenWeighted):
        share = ops.sum(loss.token_weights(labels, weights)) / size
        return share, share
    reduction = getattr(loss, "reduction", "sum_over_batch_size")
    values = getattr(loss, "call", loss)(ops.cast(labels, outputs.dtype), outputs)
    if reduction in ("none", None) or not len(values.shape):
        raise ValueError(
            "In micro-batches and on several devices a loss must be the sum or a mean "
            "of one value per label or row. Received: "
            f"reduction={reduction!r} of values of shape {tuple(values.shape)}"
        )
    mask = keras_internals.mask_of(values)
    if mask is None:
        mask = ops.ones(ops.shape(labels)[: len(values.shape)])
    counted = ops.cast(mask, "float32")
    if reduction == "sum":
        return 1.0, ops.sum(ops.ones_like(counted)) / size
    if reduction == "mean_with_sample_weight" and weights is not None:
        counted *= ops.cast(weights, "float32")
    share = ops.sum(counted) / size
    return share, share


def divided(sums: list, divisor: Tensor) -> list:
    """Returns the sums over all parts divided by their shares; 0 where those are 0."""
    return [each if each is None else ops.divide_no_nan(each, divisor) for each in sums]


def update_loss_mean(model: keras.Model, loss: Tensor, rows: Tensor) -> None:
    """Adds a batch's loss to the mean that `fit` displays."""
    shown = next(metric for metric in model.metrics if metric.name == "loss")
    shown.update_state(loss, sample_weight=rows)


_own_steps = []  # one entry for each of our steps that is being traced


@contextlib.contextmanager
def shares_applied_by_step() -> Iterator[None]:
    """Makes `replica_share` 1 in the block, because the step applies the shares."""
    _own_steps.append(True)
    try:
        yield
    finally:
        _own_steps.pop()


def replica_share(weights: Tensor | None) -> Tensor | float:
    """Returns the factor from a replica's mean to its share of the global mean.

    Keras averages the means of the replicas regardless of their weights. A loss that is
    multiplied by this factor is correct in the steps of every Keras model.

    Args:
        weights: tensor of this replica's sample weights.
    Returns:
        1.0 on one device or inside one of our steps; otherwise a float32 scalar.
    """
    if keras.backend.backend() != "tensorflow" or _own_steps:
        return 1.0
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return 1.0
    part = tf.reduce_sum(tf.cast(weights, tf.float32))
    total = context.all_reduce(tf.distribute.ReduceOp.SUM, part)
    return context.num_replicas_in_sync * ops.divide_no_nan(part, total)
