"""One number from all processes that train together."""

import keras


def mean_over_processes(model, number):
    """The mean of a number that each process has; every one must ask.

    Args:
        model: keras.Model, made under its strategy.
        number: int.
    Returns:
        Float, the same in every process.
    """
    if keras.backend.backend() == "jax":
        import numpy as np
        from jax.experimental import multihost_utils

        return float(multihost_utils.process_allgather(np.int32(number)).mean())
    import tensorflow as tf

    strategy = model.distribute_strategy
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(float(number), tf.float64)
    )
    return float(strategy.reduce(tf.distribute.ReduceOp.MEAN, values, axis=None))
