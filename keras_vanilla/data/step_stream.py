"""Steps as a stream of batches."""

import atexit
import threading
import time

import numpy as np

from keras_vanilla._checks import check_integer

QUIET = 0.1  # seconds


class StepStream:
    """The batches of the steps from one on, endless if there is a seed.

    Args:
        maker: BatchMaker.
        seed: int, or None for one pass in the plan's order.
        first_step: int.
    """

    def __init__(self, maker, seed, first_step):
        self._maker, self._seed, self._first_step = maker, seed, first_step

    def start_at(self, step):
        """Lets iterators opened from now on begin at another step.

        Raises:
            ValueError: if the step is negative, or the stream is one pass.
        """
        check_integer("step", step, 0)
        if self._seed is None:
            raise ValueError(
                "`start_at` is for the endless stream of `shuffle=True`. Received: "
                f"step={step} for one pass"
            )
        self._first_step = int(step)

    def first_step(self):
        """The step at which an iterator opened now begins."""
        return self._first_step

    def line_numbers(self, step):
        """Line numbers in the corpus of the pairs of a step, over all replicas."""
        check_integer("step", step, 0)
        return self._maker.line_numbers(int(step), self._seed)

    def dataset(self):
        """A tf.data.Dataset of them."""
        import tensorflow as tf

        def arrays(step):
            types = (tf.int32, tf.int32, tf.int32, tf.float32)
            *ids, tokens = tf.numpy_function(self._make, [step], types)
            tokens = tf.ensure_shape(tokens, [])
            return *(tf.ensure_shape(each, self._maker.shape) for each in ids), tokens

        def weighted(source_ids, target_ids, labels, tokens):
            # TensorFlow ops make the weights, and before any strategy splits the batch:
            # over the whole batch's tokens, in memory that no replica writes to.
            mask = tf.cast(tf.not_equal(labels, self._maker.pad_id), tf.float32)
            inputs = {"source_ids": source_ids, "target_ids": target_ids}
            return inputs, labels, mask / tokens

        # One step at a time: Python makes them, and would not make two at once faster.
        return self._steps().map(arrays).map(weighted).prefetch(tf.data.AUTOTUNE)

    def _make(self, step):
        with _WORK:
            return self._maker(step, self._seed)

    def _steps(self):
        """The numbers of the steps."""
        import tensorflow as tf

        if self._seed is None:
            steps = self._maker.plan.steps_per_epoch
            return tf.data.Dataset.range(self._first_step, steps)

        def first(_):
            read = tf.numpy_function(lambda: np.int64(self._first_step), [], tf.int64)
            return tf.data.Dataset.counter(tf.ensure_shape(read, []))

        # Read when an iterator opens, for `start_at`; a flat map has no known length.
        steps = tf.data.Dataset.from_tensors(0).flat_map(first)
        return steps.apply(
            tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        )


class _Work:
    """The time at which Python last made a batch, for all streams."""

    def __init__(self):
        self._lock = threading.Lock()
        self._under_way, self._ended = 0, float("-inf")

    def __enter__(self):
        with self._lock:
            self._under_way += 1

    def __exit__(self, *error):
        with self._lock:
            self._under_way -= 1
            self._ended = time.monotonic()

    def wait(self):
        """Waits until TensorFlow's threads have filled their buffers.

        One that is in Python when the interpreter ends is gone without a word, and an
        iterator that is still open then waits for it for ever.
        """
        while self._under_way or time.monotonic() - self._ended < QUIET:
            time.sleep(QUIET / 10)


_WORK = _Work()
atexit.register(_WORK.wait)
