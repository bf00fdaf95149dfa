"""Logits to log-probabilities."""

from keras import ops

from keras_vanilla._types import Tensor


def log_total(logits: Tensor) -> Tensor:
    """The log-sum-exp of logits; logits minus it are log-probabilities.

    Args:
        logits: float tensor (..., V).
    Returns:
        Float tensor (..., 1).
    """
    # TensorFlow Lite's log-softmax operator takes four times as long.
    maximum = ops.max(logits, axis=-1, keepdims=True)
    total = ops.sum(ops.exp(logits - maximum), axis=-1, keepdims=True)
    return ops.log(total) + maximum
