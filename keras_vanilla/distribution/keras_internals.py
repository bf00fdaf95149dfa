"""Private names of Keras that this package uses, for Keras 3.14 to 3.16.

All but `_flatten_layers` and `_use_cached_eval_dataset`, which are used in place.

Each function names the place in Keras on which it relies.
`tests/distribution/test_keras_internals.py` fails when Keras changes one of them.
Training on one device does not need those that `require_known_keras` guards. Nothing
here changes Keras for other models, except inside `overrides`.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import keras

KNOWN_VERSIONS = ("3.14", "3.15", "3.16")


def require_known_keras() -> None:
    """Refuses a version of Keras whose private names were not checked.

    Raises:
        RuntimeError: if the version is not in `KNOWN_VERSIONS`.
    """
    version = keras.__version__
    if not version.startswith(tuple(f"{known}." for known in KNOWN_VERSIONS)):
        raise RuntimeError(
            f"Training on several devices needs Keras {KNOWN_VERSIONS[0]} to "
            f"{KNOWN_VERSIONS[-1]}, and this is {version}: train on one device, or "
            "install one of these."
        )


def trainer_of_tensorflow() -> type:
    """Returns the base class of `keras.Model` for training on TensorFlow.

    It is `TensorFlowTrainer`, or `Trainer` in Keras 3.16, in
    `keras.src.backend.tensorflow.trainer`.
    """
    from keras.src.backend.tensorflow import trainer

    return getattr(trainer, "TensorFlowTrainer", None) or trainer.Trainer


def set_direction(metric: keras.metrics.Metric, direction: str) -> None:
    """Sets whether a metric improves "up" or "down" (`Metric._direction`).

    Without this, callbacks that monitor the metric by name fail after an epoch.
    """
    metric._direction = direction


def mask_of(tensor: Any) -> Any:
    """Returns the mask that a loss attached to its values, or None.

    It is `get_keras_mask` of `keras.src.backend`; on JAX tensors have no attributes.
    """
    from keras.src import backend

    return backend.get_keras_mask(tensor)


@contextlib.contextmanager
def deterministic_operations() -> Iterator[None]:
    """Makes TensorFlow's operations deterministic in the block.

    TensorFlow has no public function to undo this; it is in
    `tensorflow.python.framework.config`. On other backends, this does nothing.
    """
    if keras.backend.backend() != "tensorflow":
        yield
        return
    from tensorflow.python.framework import config

    before = config.is_op_determinism_enabled()
    config.enable_op_determinism()
    try:
        yield
    finally:
        if not before:
            config.disable_op_determinism()


@contextlib.contextmanager
def weights_kept(model: keras.Model) -> Iterator[None]:
    """Keeps a model's weights on JAX if a batch cannot be read in the block.

    JAX's trainer removes the values of the variables (`Variable._value`) before it
    reads the first batch, and `evaluate` does not restore them after an error.
    """
    if keras.backend.backend() != "jax":
        yield
        return
    optimizer = getattr(model, "optimizer", None)
    variables = [*model.variables, *(optimizer.variables if optimizer else ())]
    before = [(variable, variable.value) for variable in variables]
    try:
        yield
    except BaseException:
        model.jax_state_sync()
        for variable, value in before:
            if variable._value is None and not value.is_deleted():
                variable.assign(value)
        raise


def layout_of(variable: keras.Variable) -> Any:
    """Returns a variable's `TensorLayout` under `keras.distribution`, or None."""
    return getattr(variable, "_layout", None)


def unscaled(optimizer: keras.Optimizer) -> keras.Optimizer:
    """Returns the optimizer that loss scaling wraps, or else the optimizer itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


@contextlib.contextmanager
def gradients_already_summed(optimizer: keras.Optimizer) -> Iterator[None]:
    """Lets an optimizer take gradients that are already sums over the replicas.

    Keras clips the gradients of each replica and sums them afterwards, inside `apply`.
    MirroredStrategy traces its replicas in alternating threads, so several can be in
    this block at once; the optimizer's method is restored when the last one leaves.
    """
    require_known_keras()
    applying = unscaled(optimizer)
    applying._all_reduce_sum_gradients = list
    _already_summed.append(applying)
    try:
        yield
    finally:
        _already_summed.remove(applying)
        if not any(other is applying for other in _already_summed):
            del applying._all_reduce_sum_gradients


_already_summed = []


@contextlib.contextmanager
def overrides() -> Iterator[None]:
    """Makes Keras train every model correctly under `tf.distribute` in the block.

    Only for strategies with more than one replica. A nested block has no effect.
    """
    from keras.src.backend.tensorflow import trainer

    if hasattr(trainer.reduce_per_replica, "__wrapped__"):
        yield
        return
    require_known_keras()
    of_tensorflow = trainer_of_tensorflow()
    with contextlib.ExitStack() as originals:
        for owner, name, override in (
            (of_tensorflow, "make_train_function", _refusing),
            (of_tensorflow, "_maybe_symbolic_build", _built_on_one_replica),
            (trainer, "reduce_per_replica", _scalars_reduced),
        ):
            original = vars(owner)[name]
            setattr(owner, name, override(original))
            originals.callback(setattr, owner, name, original)
        yield


def _refusing(original):
    """Refuses unsupported models before the first step, including users' models."""
    from keras_vanilla.distribution.refusals import refuse_what_cannot_work

    @functools.wraps(original)
    def make_train_function(self, force=False):
        refuse_what_cannot_work(self)
        return original(self, force=force)

    return make_train_function


def _built_on_one_replica(original):
    """Builds models with the shapes of the rows of one replica.

    Keras uses the mean of the rows of all replicas, which fails if replicas have
    different numbers of rows, and between workers.
    """
    import tensorflow as tf

    @functools.wraps(original)
    def maybe_symbolic_build(self, iterator=None, data_batch=None):
        if iterator is not None and self._distribute_strategy is not None:
            local = self.distribute_strategy.experimental_local_results
            for _, _, batches in iterator:
                data_batch = tf.nest.map_structure(
                    lambda value: local(value)[0], next(batches)
                )
                break
        return original(self, data_batch=data_batch)

    return maybe_symbolic_build


def _scalars_reduced(original):
    """Averages scalars between workers; Keras requests a mean over their rows."""
    import tensorflow as tf
    from keras.src.backend.tensorflow import trainer

    @functools.wraps(original)
    def reduce_per_replica(values, strategy, reduction):
        several = trainer._collective_all_reduce_multi_worker(strategy)
        if several and reduction in ("auto", "mean"):
            return tf.nest.map_structure(
                lambda value: strategy.reduce("MEAN", value, axis=None), values
            )
        return original(values, strategy, reduction)

    return reduce_per_replica
