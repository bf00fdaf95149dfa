"""Logits to log-probabilities."""

from keras import ops

from keras_vanilla._types import Tensor


def log_total(logits: Tensor) -> Tensor:
    """What is subtracted from logits to make them log-probabilities.

    Args:
        logits: float tensor (..., V).
    Returns:
        Float tensor (..., 1).
    """
    # TensorFlow Lite's own log-softmax operator takes four times as long.
    maximum = ops.max(logits, axis=-1, keepdims=True)
    total = ops.sum(ops.exp(logits - maximum), axis=-1, keepdims=True)
    return ops.log(total) + maximum
