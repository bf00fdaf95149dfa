"""Agreement between the processes of a training."""

import keras


def mean_over_processes(model: keras.Model, number: int) -> float:
    """Returns the mean of a number over all processes, which must all call this.

    Args:
        model: keras.Model that was created in its strategy's scope.
        number: int. The number of this process.
    Returns:
        Float, equal in all processes.
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
