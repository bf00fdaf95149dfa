"""Which pairs stand in which batch, in a few bytes a pair."""

import threading
import warnings
from typing import NamedTuple

import numpy as np


class Survey:
    """What one walk over the lengths of all pairs finds out.

    Args:
        examples: `EncodedPairs` or the like.
        max_tokens: int. Longest sequence of a pair that is kept.
    Attributes:
        counts: int64 array. Number of pairs kept of each longer length.
        target_tokens: int. Of all pairs kept.
        too_long: list of int. Line numbers of the other pairs.
    """

    def __init__(self, examples, max_tokens):
        self.counts = np.zeros(min(max_tokens, examples.longest) + 1, dtype=np.int64)
        self.target_tokens, self.too_long = 0, []
        for first, lengths in examples.chunks():
            longest = lengths.max(axis=1)
            kept = longest <= max_tokens
            self.counts += np.bincount(longest[kept], minlength=len(self.counts))
            self.target_tokens += int(lengths[kept, 1].sum(dtype=np.int64))
            left_out = first + np.flatnonzero(~kept)
            self.too_long += examples.line_numbers(left_out).tolist()


class _Bucket(NamedTuple):
    """Pairs start to stop, and its batches from the first on, of `rows` pairs each."""

    start: int
    stop: int
    first_batch: int
    rows: int
    width: int


class Plan:
    """Which pairs stand in which batch.

    The pairs lie bucket by bucket, longest first; a batch is a span of them. An epoch
    permutes the pairs inside each bucket, then the batches: their number and shapes
    stay. Two numbers a pair are kept, of four bytes up to four billion pairs: the order
    by length, and that of the epoch being read.

    Args:
        examples: `EncodedPairs` or the like.
        survey: Survey of them.
        widths: rising ints, the longest sequence of each bucket.
        tokens_per_batch: int. Most padded positions of a batch.
        drop_remainder: bool. Leave out incomplete batches, with a warning.
    Raises:
        ValueError: if no pair or no batch is left.
    """

    def __init__(self, examples, survey, widths, tokens_per_batch, drop_remainder):
        self._by_length = _longest_first(examples, survey.counts)
        self._buckets, left_out = [], 0
        self.steps_per_epoch = stop = 0
        for width, pairs in _pairs_of_widths(widths, survey.counts):
            start, stop = stop, stop + pairs
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

    def batch(self, step, seed):
        """The pairs of a step, and the rows and the width of its bucket."""
        epoch, number = divmod(step, self.steps_per_epoch)
        with self._lock:  # two iterators may read different epochs
            if seed is not None:
                self._shuffle(seed, epoch)
                number = int(self._batch_order[number])
            bucket = self._bucket_of(number)
            start = bucket.start + (number - bucket.first_batch) * bucket.rows
            stop = min(start + bucket.rows, bucket.stop)
            order = self._by_length if seed is None else self._order
            return order[start:stop].astype(np.int64), bucket.rows, bucket.width

    @property
    def shapes(self):
        """The (rows, width) of every bucket with a batch."""
        ends = [bucket.first_batch for bucket in self._buckets[1:]]
        ends.append(self.steps_per_epoch)
        return {
            (bucket.rows, bucket.width)
            for bucket, end in zip(self._buckets, ends, strict=True)
            if bucket.first_batch < end
        }

    def _bucket_of(self, number):
        return next(b for b in reversed(self._buckets) if b.first_batch <= number)

    def _shuffle(self, seed, epoch):
        """Makes the order that of an epoch, in the place of the epoch's before."""
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
                if total
                else "No pair is left: every one is longer than `max_tokens`."
            )
        if left_out:
            warnings.warn(
                f"Each epoch leaves out {left_out} of {total} pairs, because "
                "incomplete batches are dropped.",
                stacklevel=4,
            )


def _pairs_of_widths(widths, counts):
    """The widest bucket's width and number of pairs first; empty buckets are none."""
    below = np.concatenate([[0], np.cumsum(counts)])
    edges = np.minimum(np.add((-1, *widths), 1), len(counts))
    pairs = np.diff(below[edges]).tolist()
    return [(w, n) for w, n in zip(widths[::-1], pairs[::-1], strict=True) if n]


def _longest_first(examples, counts):
    """The numbers of the pairs kept, longest first, those of a length in their order.

    Counted into place chunk by chunk: sorting would take eight bytes a pair and more.
    """
    order = np.empty(counts.sum(), dtype=np.min_scalar_type(len(examples)))
    free = np.cumsum(counts[::-1])[::-1] - counts  # the next place of each length
    for first, lengths in examples.chunks():
        longest = lengths.max(axis=1)
        pairs = np.flatnonzero(longest < len(counts))
        pairs = pairs[np.argsort(longest[pairs], kind="stable")]
        values, begins, sizes = np.unique(
            longest[pairs], return_index=True, return_counts=True
        )
        within = np.arange(len(pairs)) - np.repeat(begins, sizes)
        order[np.repeat(free[values], sizes) + within] = first + pairs
        free[values] += sizes
    return order
