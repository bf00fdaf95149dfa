"""Agreement between the processes that train one model."""

import keras


def mean_over_processes(model: keras.Model, number: int) -> float:
    """The mean of a number over all processes; each of them must call this.

    Args:
        model: keras.Model that was made in its strategy's scope.
        number: int. This process's number.
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
