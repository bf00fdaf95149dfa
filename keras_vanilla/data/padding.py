"""Pads batches, and mixes batches of several kinds."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vanilla.data.bucketing import Plan
from keras_vanilla.data.id_store import IdStore
from keras_vanilla.data.sampled_ids import SampledIds
from keras_vanilla.tokenizer import TokenizerProtocol

if TYPE_CHECKING:
    from keras_vanilla.distribution.replicas import Replicas


class BatchPadder:
    """Creates the padded arrays of a step, or the rows that this process feeds.

    Args:
        plan: Plan, which assigns pairs to steps.
        store: IdStore with the ids of the pairs.
        tokenizer: TokenizerProtocol, for its special ids.
        static_shapes: bool. Pad to the bucket's width and number of rows.
        replicas: Replicas that share each batch.
        sampled: SampledIds of the store; None uses the ids in the store.
    """

    def __init__(
        self,
        plan: Plan,
        store: IdStore,
        tokenizer: TokenizerProtocol,
        static_shapes: bool,
        replicas: "Replicas",
        sampled: SampledIds | None = None,
    ):
        self.plan, self.store, self._sampled = plan, store, sampled
        self.static_shapes, self._replicas = static_shapes, replicas
        self.pad_id, self._start_id = tokenizer.pad_id, tokenizer.start_id

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches that contain every pair once."""
        return self.plan.steps_per_epoch

    @property
    def target_growth(self) -> float:
        """The number of target ids relative to that in the store."""
        return 1.0 if self._sampled is None else self._sampled.target_growth

    def arrays(
        self, step: int, seed: int | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Source ids (B, S), target ids (B, T) and labels (B, T) of a step, int32."""
        pairs, rows, width = self.plan.batch(int(step), seed)
        store = self.store
        if self._sampled is not None:
            store = self._sampled.draw(pairs, int(step), width)
            pairs = np.arange(len(pairs))
        lengths = store.lengths(pairs)  # (B, 2)
        source_width, target_width = lengths.max(axis=0)
        if self.static_shapes:
            source_width = target_width = width
        here = self._rows_here(rows if self.static_shapes else len(pairs))
        source_flat, target_flat = store.read(pairs[here])
        source_lengths, target_lengths = lengths[here].T
        height = here.stop - here.start
        source_ids, _ = self._padded(source_flat, source_lengths, height, source_width)
        labels, mask = self._padded(target_flat, target_lengths, height, target_width)
        return source_ids, self._shifted(labels, mask), labels

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """(rows, width) if all batches have the same, else (None, None)."""
        shapes = self.plan.shapes if self.static_shapes else ()
        if len(shapes) != 1:
            return None, None
        ((rows, width),) = shapes
        here = self._rows_here(rows)
        return here.stop - here.start, width

    def line_numbers(self, step: int, seed: int | None) -> list[int]:
        """Line numbers of the pairs of a step in the corpus, over all replicas."""
        return self.store.line_numbers(self.plan.batch(step, seed)[0]).tolist()

    def _rows_here(self, rows):
        """The rows that this process feeds; every replica takes the same number."""
        per_replica = -(-rows // self._replicas.count)
        first = self._replicas.first * per_replica
        return slice(first, first + self._replicas.here * per_replica)

    def _padded(self, flat, lengths, height, width):
        """Ids (height, width) and their mask; rows after the pairs are padding."""
        column = np.zeros((height, 1), dtype=np.int64)
        column[: len(lengths), 0] = lengths
        mask = np.arange(width) < column  # (height, width)
        ids = np.full((height, width), self.pad_id, dtype=np.int32)
        ids[mask] = flat
        return ids, mask

    def _shifted(self, labels, mask):
        """The decoder's input: `start_id`, then all labels except the last."""
        ids = np.full_like(labels, self.pad_id)
        ids[:, 1:][mask[:, 1:]] = labels[:, :-1][mask[:, 1:]]
        ids[mask[:, 0], 0] = self._start_id
        return ids


class BatchMixture:
    """Mixes the batches of several padders, with the interface of one padder.

    An epoch has all batches of the first padder, and the requested share of the others,
    in a new order. The other padders continue in the next epoch where they stopped. The
    batch of a step depends only on (seed, step).

    Args:
        padders: list of BatchPadder with the same store.
        shares: list of float, for all padders except the first.
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
        """Same as in `BatchPadder`."""
        padder, own_step = self._of_step(int(step), seed)
        return padder.arrays(own_step, seed)

    def line_numbers(self, step: int, seed: int) -> list[int]:
        """Same as in `BatchPadder`."""
        padder, own_step = self._of_step(step, seed)
        return padder.line_numbers(own_step, seed)

    @property
    def shape(self) -> tuple[int | None, int | None]:
        """(rows, width) if all batches have the same, else (None, None)."""
        shapes = {padder.shape for padder in self._padders}
        return shapes.pop() if len(shapes) == 1 else (None, None)

    def _of_step(self, step, seed):
        """The padder of a step, and the step within that padder."""
        epoch, index = divmod(step, self.steps_per_epoch)
        with self._lock:  # another iterator may read another epoch
            self._mix(seed, epoch)
            kind, own_step = int(self._kinds[index]), int(self._indices[index])
        return self._padders[kind], epoch * self._counts[kind] + own_step

    def _mix(self, seed, epoch):
        """Overwrites the order with that of another epoch."""
        if self._mixed_for == (seed, epoch):
            return
        self._kinds = np.repeat(np.arange(len(self._counts)), self._counts)
        np.random.default_rng([seed, epoch, len(self._counts)]).shuffle(self._kinds)
        self._indices = np.empty_like(self._kinds)
        for kind, count in enumerate(self._counts):
            self._indices[self._kinds == kind] = np.arange(count)
        self._mixed_for = (seed, epoch)
