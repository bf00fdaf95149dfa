"""What inside a training step depends on the backend."""

import keras
from keras import ops

_TOO_LARGE = (
    "The weights must be mask / sum(mask) and sum to 1 over the global batch, or the "
    "learning rate would grow with the batch. Received weights that sum to more than 1"
)


def refuse_unnormalised(weights):
    """Refuses missing weights, and 0/1 masks, wherever their values can be read.

    That is: in eager code on every backend, and inside TensorFlow's compiled steps
    (without XLA, which drops assertions). A compiled JAX step cannot read them.

    Args:
        weights: float tensor (B, T) of per-token weights, or None.
    Raises:
        ValueError: if they are missing or sum to more than 1; inside a compiled step
            `tf.errors.InvalidArgumentError`.
    """
    if weights is None:
        raise ValueError(
            "The loss needs per-token weights, mask / sum(mask), as `batches` makes "
            "them. Received: sample_weight=None"
        )
    try:
        total = float(ops.convert_to_numpy(weights).astype("float64").sum())
    except (NotImplementedError, TypeError, ValueError):
        _refuse_in_graph(weights)
        return
    if total > 1.001:
        raise ValueError(f"{_TOO_LARGE}: {total:g}")


def _refuse_in_graph(weights):
    if keras.backend.backend() != "tensorflow":
        return
    import tensorflow as tf

    if tf.is_tensor(weights):  # not the placeholder of a model's symbolic build
        total = tf.reduce_sum(tf.cast(weights, "float32"))
        tf.debugging.assert_less_equal(total, 1.001, _TOO_LARGE)
