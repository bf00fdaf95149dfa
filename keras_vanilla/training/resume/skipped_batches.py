"""Batches that a resumed `fit` passes over."""

from typing import Any

import keras

from keras_vanilla.training.resume import model_state


class SkippedBatches:
    """The batches of an epoch that were trained on before a snapshot.

    True as long as some are left.

    Args:
        count: int. Number of batches.
        steps_per_execution: int. Number of batches in one call of the train function.
        random_state: what `model_state.random_state` returned, to restore at their end.
    """

    def __init__(
        self, count: int = 0, steps_per_execution: int = 1, random_state: Any = None
    ):
        self._calls = count // steps_per_execution
        self._batches_per_call = steps_per_execution
        self._random_state = random_state

    def __bool__(self) -> bool:
        return self._calls > 0

    def count_call(self) -> None:
        """Counts one call of the train function."""
        self._calls -= 1
        if not self._calls:
            model_state.restore_random_state(self._random_state)

    def skip_in(self, model: keras.Model, logs: dict | None, read: bool) -> None:
        """Makes the running `fit` of a model pass over them.

        Args:
            model: keras.Model whose train function is made.
            logs: what the train function returned at the snapshot.
            read: bool. Whether the data begin with these batches, so that they must be
                read. PyTorch's `fit` reads each batch itself.
        """
        train, this_fit = model.train_function, model.history
        reads = read and keras.backend.backend() != "torch"

        def pass_over(*arguments):  # iterator; on JAX: state, iterator
            if not self or model.history is not this_fit:
                model.train_function = train
                return train(*arguments)
            for _ in range(self._batches_per_call if reads else 0):
                next(arguments[-1])
            return (logs, *arguments[:-1]) if arguments[:-1] else logs

        if self:
            model.train_function = pass_over
