"""Batches as a tf.data.Dataset that can be open while Python exits.

TensorFlow's threads call Python for each batch. If a thread does so while the
interpreter exits, it is lost without an error, and an open iterator waits for it
forever. So TensorFlow variables count the calls before and after each call. At exit, a
flag stops new calls, and Python waits until all calls have returned.

A `keras.utils.PyDataset` would not need TensorFlow, but Keras turns it into a generator
dataset of unknown cardinality, for which `fit` on TensorFlow runs an extra step.
"""

import atexit
import contextlib
import functools
import threading
import time
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

MOST_SECONDS = 5.0  # longest wait for a call whose iterator was deleted


def batch_dataset(
    arrays: Callable,
    first_step: Callable[[], int],
    stop_step: int | None,
    shape: tuple[int | None, int | None],
    pad_id: int,
    functions: tuple[Callable, ...] = (),
) -> tf.data.Dataset:
    """Creates a dataset of the batches of consecutive steps.

    Args:
        arrays: function that maps a step to its source ids, target ids and labels.
        first_step: function that returns the first step of a new iterator.
        stop_step: int. The step after the last; None means an infinite dataset.
        shape: (rows, width) of every array, with None for sizes that vary.
        pad_id: int. Labels with this id get weight 0, others weight 1.
        functions: functions of the inputs, labels and weights, applied in order.
    """
    if keras.backend.backend() != "tensorflow":
        # TensorFlow would allocate all memory of the GPUs for batches only.
        with contextlib.suppress(RuntimeError):  # too late if TensorFlow has started
            tf.config.set_visible_devices([], "GPU")

    def read(step):
        # One step at a time, because Python would not be faster with two at once.
        return _python_call(arrays, [step], [tf.int32] * 3, [shape] * 3)

    def with_weights(source_ids, target_ids, labels):
        # Computed by TensorFlow, because `MirroredStrategy` may overwrite NumPy memory.
        weights = tf.cast(tf.not_equal(labels, pad_id), tf.float32)
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        return inputs, labels, weights

    dataset = _steps(first_step, stop_step).map(read).map(with_weights)
    for function in functions:
        dataset = dataset.map(function)
    return dataset.prefetch(tf.data.AUTOTUNE)


def _steps(first_step, stop_step):
    """The step numbers; the first is read when an iterator is opened."""
    if stop_step is not None:
        return tf.data.Dataset.range(first_step(), stop_step)

    def count(_):
        (first,) = _python_call(lambda: np.int64(first_step()), [], [tf.int64], [[]])
        return tf.data.Dataset.counter(first)

    steps = tf.data.Dataset.from_tensors(0).flat_map(count)
    return steps.apply(
        tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    )


def _python_call(function, arguments, dtypes, shapes):
    """Calls Python inside a graph; returns zeros without a call at exit."""
    calls = _calls()

    def call():
        results = tf.numpy_function(
            lambda *values: calls.run(function, values), arguments, dtypes
        )
        return [tf.ensure_shape(x, s) for x, s in zip(results, shapes, strict=True)]

    def zeros():
        return [
            tf.zeros([size or 0 for size in shape], dtype)
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ]

    # The count is increased before the flag is read, and at exit the flag is set before
    # the counts are read. So a call either sees the flag or is waited for.
    with tf.control_dependencies([calls.started.add_one()]):
        ending = calls.ending.read()
    results = tf.cond(ending, zeros, call)
    with tf.control_dependencies(results):
        ended = calls.ended.add_one()
    with tf.control_dependencies([ended]):
        return [tf.identity(result) for result in results]


class _Shared:
    """A variable of this process that every graph can use, under any strategy."""

    def __init__(self, name, dtype):
        self._dtype = dtype
        with tf.init_scope(), tf.device("CPU:0"):
            self._handle = tf.raw_ops.VarHandleOp(
                dtype=dtype, shape=[], shared_name=f"keras_vanilla_{name}"
            )
        self.assign(0)

    def assign(self, value):
        with tf.init_scope():
            value = tf.cast(value, self._dtype)
            tf.raw_ops.AssignVariableOp(resource=self._handle, value=value)

    def read(self):
        return tf.raw_ops.ReadVariableOp(resource=self._handle, dtype=self._dtype)

    def add_one(self):
        one = tf.ones([], self._dtype)
        return tf.raw_ops.AssignAddVariableOp(resource=self._handle, value=one)


class _Calls:
    """Counts the calls of Python from all datasets of this process."""

    def __init__(self):
        self.started = _Shared("calls_started", tf.int64)
        self.ended = _Shared("calls_ended", tf.int64)
        self.ending = _Shared("python_is_ending", tf.bool)
        self._lock = threading.Lock()
        self._running = self._failed = 0
        atexit.register(self._wait)

    def run(self, function, values):
        """Calls a function for `numpy_function`, and counts what TensorFlow cannot."""
        with self._lock:
            self._running += 1
        try:
            return function(*values)
        except BaseException:
            with self._lock:
                self._failed += 1  # TensorFlow does not count its return
            raise
        finally:
            with self._lock:
                self._running -= 1

    def _wait(self):
        self.ending.assign(1)
        until = time.monotonic() + MOST_SECONDS
        while self._running or (self._missing() and time.monotonic() < until):
            time.sleep(0.005)
        if self._failed:
            time.sleep(0.1)  # so that TensorFlow can handle the error

    def _missing(self):
        """The number of calls that have started and neither returned nor failed."""
        return int(self.started.read()) - int(self.ended.read()) - self._failed


@functools.cache
def _calls():
    return _Calls()
