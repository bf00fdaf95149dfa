"""What inside a training step depends on the backend."""

import importlib

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


def train_step(model, micro_batches, *state_and_data):
    """One update of a model, as this backend makes it.

    Args:
        model: compiled Transformer.
        micro_batches: int. Parts of the batch to go through one after the other.
        state_and_data: what `model.train_step` is called with.
    Returns:
        What `model.train_step` returns.
    Raises:
        ValueError: if the weights are missing, or layers have losses of their own and
            there are micro-batches.
    """
    *state, data = state_and_data
    data = keras.utils.unpack_x_y_sample_weight(data)
    if data[2] is None:
        refuse_unnormalised(None)
    if micro_batches > 1 and model.losses:
        raise ValueError(
            "Losses of layers, such as regularizers, would be added once for each "
            f"micro-batch. Received: micro_batches={micro_batches} and "
            f"{len(model.losses)} losses of layers"
        )
    backend = importlib.import_module(
        f"keras_vanilla.distribution.steps.{keras.backend.backend()}_step"
    )
    return backend.train_step(model, *state, data, micro_batches)


def test_step(model, *state_and_data):
    """The metrics after one more batch; arguments and result as of `train_step`."""
    if keras.backend.backend() == "tensorflow":
        from keras_vanilla.distribution.steps import tensorflow_step

        return tensorflow_step.test_step(model, *state_and_data)
    return keras.Model.test_step(model, *state_and_data)
