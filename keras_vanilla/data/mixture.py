"""Batches of several kinds, mixed in every epoch."""

import threading
from collections.abc import Sequence

import numpy as np

from keras_vanilla.data.padding import BatchPadder


class BatchMixture:
    """Mixes the batches of several padders, as if they were those of one.

    An epoch has all batches of the first padder, and for each other one the share
    asked for, in an order of its own. What the others do not use up in one epoch they
    go on with in the next. Which batch a step has depends on (seed, step) alone.

    Args:
        padders: list of BatchPadder of one store.
        shares: list of float, of all but the first.
    Attributes:
        store: IdStore.
        steps_per_epoch: int.
    """

    def __init__(self, padders: Sequence[BatchPadder], shares: Sequence[float]):
        self._padders = list(padders)
        first, *others = padders
        self.store, self.pad_id = first.store, first.pad_id
        self.static_shapes = first.static_shapes
        self._counts = [first.steps_per_epoch] + [
            max(1, round(share * padder.steps_per_epoch))
            for padder, share in zip(others, shares, strict=True)
        ]
        self.steps_per_epoch = sum(self._counts)
        self._lock = threading.Lock()
        self._mixed_for = None

    def arrays(self, step: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As of `BatchPadder`."""
        padder, own_step = self._of_step(int(step), seed)
        return padder.arrays(own_step, seed)

    def line_numbers(self, step: int, seed: int) -> list[int]:
        """As of `BatchPadder`."""
        padder, own_step = self._of_step(step, seed)
        return padder.line_numbers(own_step, seed)

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """(rows, width) if all batches have the same, else (None, None)."""
        shapes = {padder.shape for padder in self._padders}
        return shapes.pop() if len(shapes) == 1 else (None, None)

    def _of_step(self, step, seed):
        """The padder of a step, and which of its own steps it is."""
        epoch, number = divmod(step, self.steps_per_epoch)
        with self._lock:  # another iterator may read another epoch
            self._mix(seed, epoch)
            kind, own = int(self._kinds[number]), int(self._numbers[number])
        return self._padders[kind], epoch * self._counts[kind] + own

    def _mix(self, seed, epoch):
        """Overwrites the order of one epoch with that of another."""
        if self._mixed_for == (seed, epoch):
            return
        self._kinds = np.repeat(np.arange(len(self._counts)), self._counts)
        np.random.default_rng([seed, epoch, len(self._counts)]).shuffle(self._kinds)
        self._numbers = np.empty_like(self._kinds)
        for kind, count in enumerate(self._counts):
            self._numbers[self._kinds == kind] = np.arange(count)
        self._mixed_for = (seed, epoch)
