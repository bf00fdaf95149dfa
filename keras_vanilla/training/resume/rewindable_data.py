"""Data that a resumed training can read again from where it was."""

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from keras_vanilla.models.fit_arguments import INFINITE, cardinality
from keras_vanilla.training.resume import model_state


class RewindableData:
    """What `fit` is given, as a resumed training reads it.

    Shuffled `Batches` begin at any step. All other data must give the same batches in
    every epoch; those that were trained on before are read and passed over.

    Args:
        data: `Batches`, a finite `tf.data.Dataset`, or another iterable of batches that
            begins anew with each `iter`; no `keras.utils.PyDataset`.
    Attributes:
        digest: str. Of what decides the batches, or of the first batch.
        seekable: bool. Whether iterators can begin at any step.
    Raises:
        ValueError: if the data cannot be rewound.
    """

    def __init__(self, data: Any):
        self._data = data
        self.seekable = getattr(data, "endless", False)
        self._is_batches = hasattr(data, "start_at")
        if self._is_batches:
            self._check_map()
        self.digest = data.digest if self._is_batches else _digest_of_first_batch(data)

    def batches(self) -> Iterator:
        """An iterable of batches as `fit` sees them."""
        return self._data.dataset() if self._is_batches else self._data

    def refuse_other_batches(self, data: Any) -> None:
        """Refuses to resume `fit` with other `Batches` than these.

        They would not begin where these are told to begin.

        Args:
            data: what `fit` is given.
        Raises:
            ValueError: if both are `Batches`, and not the same object.
        """
        if self._is_batches and hasattr(data, "start_at") and data is not self._data:
            raise ValueError(
                "`fit` has other `Batches` than `ExactResume`: give both the same "
                "object. `Batches.map` returns a new one."
            )

    def check_epoch(self, steps: int | None, steps_per_execution: int = 1) -> None:
        """Refuses epochs that are not one pass over the data.

        `fit` would continue in the middle of the data after such an epoch, where a
        resumed training would begin anew.

        Args:
            steps: int or None. Number of batches of an epoch, if `fit` knows it.
            steps_per_execution: int. Number of batches in one call of the train
                function.
        Raises:
            ValueError: if it is not the number of batches in the data, or
                `steps_per_execution` does not divide it.
        """
        if steps and steps % steps_per_execution:
            raise ValueError(
                "`ExactResume` needs `steps_per_execution` that divides the number of "
                f"batches of an epoch. Received: steps_per_execution="
                f"{steps_per_execution}, {steps} batches"
            )
        if self.seekable:
            return
        batches = _number_of_batches(self._data)
        if steps != batches:
            raise ValueError(
                "`ExactResume` needs epochs that are one pass over the data, or "
                f"shuffled `Batches`. Received: {steps} steps per epoch, "
                f"{'an unknown number of' if batches is None else batches} batches in "
                "the data"
            )

    def first_step(self) -> int:
        """The step at which an iterator opened now begins."""
        return self._data.first_step() if self._is_batches else 0

    def start_at(self, step: int) -> None:
        """Lets iterators opened from now on begin at another step, if they can."""
        if self.seekable:
            self._data.start_at(step)

    def line_numbers(self, step: int) -> list[int]:
        """Line numbers in the corpus of the pairs of a step; empty if not known."""
        return sorted(self._data.line_numbers(step)) if self._is_batches else []

    def _check_map(self):
        """Refuses batches whose `map` does not depend on the batch alone."""
        if self.seekable:
            first = self._data.first_step()
            _, in_order = itertools.islice(self._data, 2)
            self._data.start_at(first + 1)
            try:
                alone = next(iter(self._data))
            finally:
                self._data.start_at(first)
        else:
            dataset = self._data.dataset()
            in_order, alone = (next(iter(dataset)) for _ in range(2))
        if _digest(in_order) != _digest(alone):
            raise ValueError(
                "The function given to `Batches.map` changes the same batch in another "
                "way each time, so that a training cannot be resumed exactly. Random "
                "numbers must depend on the batch: see `tf.random.stateless_uniform`."
            )


def _digest_of_first_batch(data):
    """A digest of the first batch, which must be the same each time."""
    random_state = model_state.random_state()
    digests = [_digest(_first_batch(data)) for _ in range(2)]
    model_state.restore_random_state(random_state)
    if digests[0] != digests[1]:
        raise ValueError(
            "The data give another first batch each time they are read, so that a "
            f"training cannot be resumed exactly. {WHAT_TO_DO}"
        )
    return digests[0]


WHAT_TO_DO = (
    "Use `batches(...)` and its `map`, or data with one order for every epoch, such as "
    "a dataset with `shuffle(..., reshuffle_each_iteration=False)`."
)


def _first_batch(data):
    if isinstance(data, keras.utils.PyDataset):
        raise ValueError(
            "A PyDataset may change its order, and `fit` shuffles it by default, so "
            "that a training cannot be resumed exactly: use `batches(...)` and its "
            "`map`, or a tf.data.Dataset."
        )
    iterator = iter(data)
    if iterator is data:
        raise ValueError(
            f"A {type(data).__name__} can be read only once, so that a training cannot "
            f"be resumed exactly. {WHAT_TO_DO}"
        )
    if cardinality(data) == INFINITE:
        raise ValueError(
            "An endless dataset does not say where an epoch begins, so that a training "
            "cannot be resumed exactly. Give `Batches` themselves (with `Batches.map` "
            "to change them) instead of their `dataset()`, or one pass over the data."
        )
    return next(iterator)


def _number_of_batches(data):
    count = cardinality(data)
    if count is not None:
        return count if count >= 0 else None
    if hasattr(data, "steps_per_epoch"):
        return data.steps_per_epoch
    try:
        return len(data)
    except TypeError:
        return None


def _digest(batch):
    digest = hashlib.sha256()
    for leaf in _leaves(batch):
        value = np.asarray(leaf)
        digest.update(f"{value.dtype} {value.shape}".encode())
        texts = value.dtype == object
        digest.update(repr(value.tolist()).encode() if texts else value.tobytes())
    return digest.hexdigest()


def _leaves(batch):
    """The arrays of a batch; of a ragged, sparse or per-replica tensor all its own."""
    try:
        import tensorflow as tf
    except ImportError:
        leaves = keras.tree.flatten(batch)
    else:
        leaves = tf.nest.flatten(batch, expand_composites=True)
    return [keras.ops.convert_to_numpy(leaf) for leaf in leaves if leaf is not None]
