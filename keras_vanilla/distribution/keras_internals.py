"""What Keras 3.15 does wrong under `tf.distribute`, put right in one place.

`install` changes Keras's own functions, for every model in the process; without a
strategy they do what they did. `tests/training/test_tensorflow_overrides.py` fails when
Keras changes what they and `tensorflow_step` stand on.
"""

import contextlib
import functools

import tensorflow as tf
from keras.src.backend.tensorflow import optimizer as keras_optimizer
from keras.src.backend.tensorflow import trainer as keras_trainer

from keras_vanilla.distribution.refusals import refuse_what_cannot_work

STANDS_ON = (
    keras_trainer.TensorFlowTrainer._maybe_symbolic_build,
    keras_trainer.TensorFlowTrainer.train_step,
    keras_trainer.TensorFlowTrainer.test_step,
    keras_trainer.reduce_per_replica,
    keras_optimizer.TFOptimizer._all_reduce_sum_gradients,
    keras_optimizer.TFOptimizer._backend_update_step,
)
_coming_summed = []  # optimizers; one entry for each replica that is being traced


@functools.cache
def install():
    """Puts the overrides in force, once."""
    trainer, optimizer = keras_trainer.TensorFlowTrainer, keras_optimizer.TFOptimizer
    trainer.make_train_function = _refusing(trainer.make_train_function)
    trainer._maybe_symbolic_build = _built_on_one_replica(trainer._maybe_symbolic_build)
    keras_trainer.reduce_per_replica = _scalars_reduced(
        keras_trainer.reduce_per_replica
    )
    optimizer._all_reduce_sum_gradients = _summed_once(
        optimizer._all_reduce_sum_gradients
    )


def _refusing(stock):
    """Says what cannot work, for models and losses of one's own too."""

    @functools.wraps(stock)
    def make_train_function(self, force=False):
        refuse_what_cannot_work(self)
        return stock(self, force=force)

    return make_train_function


def _built_on_one_replica(stock):
    """The shapes of one replica's rows: Keras takes the mean of all replicas' rows.

    That fails where replicas have different numbers of rows, and between workers.
    """

    @functools.wraps(stock)
    def maybe_symbolic_build(self, iterator=None, data_batch=None):
        if iterator is not None and self._distribute_strategy is not None:
            local = self.distribute_strategy.experimental_local_results
            for _, _, batches in iterator:
                data_batch = tf.nest.map_structure(
                    lambda value: local(value)[0], next(batches)
                )
                break
        return stock(self, data_batch=data_batch)

    return maybe_symbolic_build


def _scalars_reduced(stock):
    """Means of scalars between workers: Keras asks for a mean over rows of them."""

    @functools.wraps(stock)
    def reduce_per_replica(values, strategy, reduction):
        several = keras_trainer._collective_all_reduce_multi_worker(strategy)
        if several and reduction in ("auto", "mean"):
            return tf.nest.map_structure(
                lambda value: strategy.reduce("MEAN", value, axis=None), values
            )
        return stock(values, strategy, reduction)

    return reduce_per_replica


def _summed_once(stock):
    """No all-reduce of gradients inside `gradients_come_summed`."""

    @functools.wraps(stock)
    def all_reduce_sum_gradients(self, gradients_and_variables):
        if any(self is optimizer for optimizer in _coming_summed):
            return list(gradients_and_variables)
        return stock(self, gradients_and_variables)

    return all_reduce_sum_gradients


@contextlib.contextmanager
def gradients_come_summed(optimizer):
    """Inside, an optimizer takes gradients to be summed over the replicas already.

    Keras clips each replica's gradients and sums them afterwards, inside `apply`.

    Args:
        optimizer: keras.optimizers.Optimizer.
    """
    applying = getattr(optimizer, "inner_optimizer", optimizer)  # under loss scaling
    _coming_summed.append(applying)
    try:
        yield
    finally:
        _coming_summed.remove(applying)
