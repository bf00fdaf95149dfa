"""Assigns pairs to batches, in a few bytes per pair."""

import itertools
import math
import threading
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_vanilla._checks import check_integer
from keras_vanilla.data.filters import KEPT, REASONS, PairFilters
from keras_vanilla.data.id_store import IdStore


class Survey:
    """Filters all pairs of a corpus, and counts those that are kept by length.

    Args:
        store: IdStore.
        filters: PairFilters.
    Attributes:
        kept: bool array (pairs,).
        counts: int64 array. Number of kept pairs whose longer sequence has length i.
        target_tokens: int. Number of target tokens of all kept pairs.
        left_out: dict of reason -> line numbers of the pairs left out.
    """

    def __init__(self, store: IdStore, filters: PairFilters):
        verdicts = filters.judge(store)
        self.kept = verdicts == KEPT
        self.left_out = {
            reason: store.line_numbers(np.flatnonzero(verdicts == verdict)).tolist()
            for verdict, reason in REASONS.items()
            if (verdicts == verdict).any()
        }
        longest = min(filters.max_tokens, store.longest)
        self.counts, self.target_tokens = np.zeros(longest + 1, dtype=np.int64), 0
        for first, lengths in store.chunks():
            lengths = lengths[self.kept[first : first + len(lengths)]]
            self.counts += np.bincount(lengths.max(axis=1), minlength=longest + 1)
            self.target_tokens += int(lengths[:, 1].sum(dtype=np.int64))


def bucket_widths(widths: Sequence[int] | None, max_tokens: int) -> tuple[int, ...]:
    """The longest sequence of each bucket: as given, or 8, 12, 16, 24, 32, ...

    Raises:
        ValueError: if they do not increase from at least 1 to at least `max_tokens`.
    """
    if widths is None:
        steps = (factor << power for power in range(30) for factor in (8, 12))
        below = itertools.takewhile(lambda width: width < max_tokens, steps)
        return (*below, max_tokens)
    if not isinstance(widths, (Sequence, np.ndarray)) or isinstance(widths, str):
        raise ValueError(f"`widths` must be a list of integers. Received: {widths!r}")
    widths = tuple(check_integer("widths", width, 1) for width in widths)
    rising = all(one < other for one, other in itertools.pairwise(widths))
    if not (widths and rising and widths[-1] >= max_tokens):
        raise ValueError(
            "`widths` must rise from at least 1 to at least `max_tokens`. "
            f"Received: widths={widths}, max_tokens={max_tokens}"
        )
    return widths


class _Bucket(NamedTuple):
    """Pairs `start` to `stop`, in batches of `rows` pairs from `first_batch` on."""

    start: int
    stop: int
    first_batch: int
    rows: int
    width: int


class Plan:
    """Assigns pairs to batches.

    The pairs are ordered by bucket, longest first; a batch is a range of them. Each
    epoch permutes the pairs within each bucket, then the batches, so the number and the
    shapes of the batches never change. This takes two numbers per pair, of four bytes
    each up to four billion pairs: the order by length, and the order of the current
    epoch.

    Args:
        store: IdStore.
        survey: Survey of the pairs in the store.
        widths: increasing ints, the longest sequence of each bucket.
        tokens_per_batch: int. Largest number of positions per batch.
        drop_remainder: bool. Leave out incomplete batches, with a warning.
        growth: float, at least 1. Factor by which the sequences of a batch may be
            longer than in the store; batches have fewer rows in proportion.
    Raises:
        ValueError: if no batches remain.
    """

    def __init__(
        self,
        store: IdStore,
        survey: Survey,
        widths: Sequence[int],
        tokens_per_batch: int,
        drop_remainder: bool,
        growth: float = 1.0,
    ):
        self._by_length = _longest_first(store, survey)
        self._buckets, left_out = [], 0
        self.steps_per_epoch = stop = 0
        for width, pairs in _pairs_of_widths(widths, survey.counts):
            start, stop = stop, stop + pairs
            width = min(math.ceil(width * growth), widths[-1])
            rows = max(1, tokens_per_batch // width)
            dropped = pairs % rows if drop_remainder else 0
            left_out += dropped
            bucket = _Bucket(start, stop, self.steps_per_epoch, rows, width)
            self._buckets.append(bucket)
            self.steps_per_epoch += -((dropped - pairs) // rows)
        self._check(left_out)
        self._lock = threading.Lock()
        self._order, self._batch_order = self._by_length, None
        self._shuffled_for = None

    def batch(self, step: int, seed: int | None) -> tuple[np.ndarray, int, int]:
        """The pairs of a step, and the largest row count and width of its batch."""
        epoch, index = divmod(step, self.steps_per_epoch)
        with self._lock:  # another iterator may read another epoch
            if seed is not None:
                self._shuffle(seed, epoch)
                index = int(self._batch_order[index])
            bucket = self._bucket_of(index)
            start = bucket.start + (index - bucket.first_batch) * bucket.rows
            stop = min(start + bucket.rows, bucket.stop)
            order = self._by_length if seed is None else self._order
            return order[start:stop].astype(np.int64), bucket.rows, bucket.width

    @property
    def shapes(self) -> set[tuple[int, int]]:
        """The (rows, width) of every bucket that has batches."""
        ends = [bucket.first_batch for bucket in self._buckets[1:]]
        ends.append(self.steps_per_epoch)
        return {
            (bucket.rows, bucket.width)
            for bucket, end in zip(self._buckets, ends, strict=True)
            if bucket.first_batch < end
        }

    def _bucket_of(self, index):
        return next(b for b in reversed(self._buckets) if b.first_batch <= index)

    def _shuffle(self, seed, epoch):
        """Overwrites the order with that of another epoch."""
        if self._shuffled_for == (seed, epoch):
            return
        if self._shuffled_for is None:
            self._order = np.empty_like(self._by_length)
            batches = np.min_scalar_type(self.steps_per_epoch)
            self._batch_order = np.empty(self.steps_per_epoch, dtype=batches)
        random = np.random.default_rng([seed, epoch])
        self._order[:] = self._by_length
        for bucket in self._buckets:
            random.shuffle(self._order[bucket.start : bucket.stop])
        self._batch_order[:] = np.arange(self.steps_per_epoch)
        random.shuffle(self._batch_order)
        self._shuffled_for = (seed, epoch)

    def _check(self, left_out):
        total = len(self._by_length)
        if not self.steps_per_epoch:
            raise ValueError(
                f"No batch is left: {left_out} pairs do not fill one, and incomplete "
                "batches are dropped."
            )
        if left_out:
            warnings.warn(
                f"Each epoch leaves out {left_out} of {total} pairs, because "
                "incomplete batches are dropped.",
                stacklevel=5,
            )


def _pairs_of_widths(widths, counts):
    """(width, number of pairs) of each bucket with pairs, widest first."""
    below = np.concatenate([[0], np.cumsum(counts)])
    edges = np.minimum(np.add((-1, *widths), 1), len(counts))
    pairs = np.diff(below[edges]).tolist()
    return [(w, n) for w, n in zip(widths[::-1], pairs[::-1], strict=True) if n]


def _longest_first(store, survey):
    """The kept pairs, longest first; pairs of the same length in corpus order.

    This is a counting sort in chunks, because `np.argsort` needs eight more bytes per
    pair.
    """
    counts = survey.counts
    order = np.empty(counts.sum(), dtype=np.min_scalar_type(len(store)))
    free = np.cumsum(counts[::-1])[::-1] - counts  # next free index per length
    for first, lengths in store.chunks():
        longest = lengths.max(axis=1)
        pairs = np.flatnonzero(survey.kept[first : first + len(lengths)])
        pairs = pairs[np.argsort(longest[pairs], kind="stable")]
        values, begins, sizes = np.unique(
            longest[pairs], return_index=True, return_counts=True
        )
        within = np.arange(len(pairs)) - np.repeat(begins, sizes)
        order[np.repeat(free[values], sizes) + within] = first + pairs
        free[values] += sizes
    return order
