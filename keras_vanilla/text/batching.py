"""Pairs of sentences to batches of about equal length for `fit`."""

import functools
import itertools
import warnings
from collections.abc import Sequence

import numpy as np

from keras_vanilla.text.corpus import ParallelCorpus
from keras_vanilla.text.lines import some_of
from keras_vanilla.text.tokenizer import Tokenizer

LINES_AT_ONCE = 10_000


def batches(
    corpus: ParallelCorpus,
    tokenizer: Tokenizer,
    tokens_per_batch: int = 4096,
    max_tokens: int = 256,
    widths: Sequence[int] | None = None,
    shuffle: bool = True,
    seed: int = 0,
    static_shapes: bool = False,
    drop_remainder: bool = False,
    first_step: int = 0,
):
    """Batches of a corpus as `fit` takes them, each weighing its real tokens alike.

        target_ids = [start, y_1, ..., y_n-1]    labels = [y_1, ..., y_n = end]
        weights = mask / sum(mask)

    Pairs are put in buckets by the longer of their two sequences, and a batch comes
    from one bucket. Every epoch has `dataset.steps_per_epoch` batches with every pair
    once. With `shuffle` the stream is endless, and its step n depends on (seed, n)
    alone; without, it is one pass, longest pairs first, of known cardinality.

    Pairs longer than `max_tokens` are left out, with a warning; `dataset.report` maps
    each reason to line numbers of the corpus.

    Args:
        corpus: ParallelCorpus.
        tokenizer: Tokenizer.
        tokens_per_batch: int. Target positions of a batch over all devices, padding
            counted; a batch has `max(1, tokens_per_batch // width)` rows.
        max_tokens: int. Longest sequence, its end counted, on either side.
        widths: rising ints, the longest sequence of each bucket; None means 8, 12, 16,
            24, 32, ... up to `max_tokens`.
        shuffle: bool. A new order in every epoch, without end.
        seed: int. Of that order.
        static_shapes: bool. Pad to the bucket's width, and to its number of rows with
            rows of weight 0, so that each bucket has one shape; for XLA and TPUs.
        drop_remainder: bool. Leave out incomplete batches, with a warning.
        first_step: int. The step to start at, for going on with a run.
    Returns:
        tf.data.Dataset of ({"source_ids": (B, S), "target_ids": (B, T)}, labels (B, T),
        weights (B, T)), ids int32, weights float32, with the attributes
        `steps_per_epoch`, `tokens_per_epoch` (real target tokens) and `report` (dict).
    Raises:
        ValueError: if a number is out of its range, `widths` do not rise to
            `max_tokens`, no pair or no batch is left, or an id is outside the
            tokenizer's vocabulary.
    Example:
        train = batches(corpus, tokenizer)
        model.fit(train, steps_per_epoch=train.steps_per_epoch, epochs=10)
    """
    _at_least(1, tokens_per_batch=tokens_per_batch)
    _at_least(2, max_tokens=max_tokens)
    _at_least(0, seed=seed, first_step=first_step)
    widths = _default_widths(max_tokens) if widths is None else tuple(widths)
    _check_widths(widths, max_tokens)

    sources = _Ids(corpus.sources, tokenizer.encode, tokenizer.vocabulary_size)
    targets = _Ids(
        corpus.targets, tokenizer.encode_target, tokenizer.target_vocabulary_size
    )
    longest = np.maximum(sources.lengths, targets.lengths)  # of each pair
    too_long = corpus.line_numbers[longest > max_tokens].tolist()
    if too_long:
        _warn_too_long(too_long, len(corpus), max_tokens)
    plan = _Plan(longest, max_tokens, widths, tokens_per_batch, drop_remainder)
    maker = _BatchMaker(plan, sources, targets, tokenizer, static_shapes)

    dataset = _dataset(maker, plan, seed if shuffle else None, first_step)
    dataset.steps_per_epoch = plan.steps_per_epoch
    dataset.tokens_per_epoch = int(targets.lengths[longest <= max_tokens].sum())
    dataset.report = corpus.report | ({"too long": too_long} if too_long else {})
    return dataset


class _Ids:
    """The ids of every line, one after the other in a flat array."""

    def __init__(self, lines, encode, size):
        chunks, lengths, lines = [], [], iter(lines)
        while chunk := list(itertools.islice(lines, LINES_AT_ONCE)):
            ids = encode(chunk)
            lengths.append(np.fromiter(map(len, ids), np.int64, len(ids)))
            flat = np.fromiter(itertools.chain.from_iterable(ids), np.int64)
            chunks.append(_checked(flat, size).astype(np.int32))
        self._flat = np.concatenate(chunks)
        self.lengths = np.concatenate(lengths)
        self._starts = np.cumsum(self.lengths) - self.lengths

    def padded(self, pairs, height, width, pad_id):
        """(height, width) ids and their mask; rows after the pairs' are padding."""
        lengths = np.zeros((height, 1), dtype=np.int64)
        starts = np.zeros((height, 1), dtype=np.int64)
        lengths[: len(pairs), 0] = self.lengths[pairs]
        starts[: len(pairs), 0] = self._starts[pairs]
        positions = np.arange(width)
        mask = positions < lengths  # (height, width)
        ids = np.full((height, width), pad_id, dtype=np.int32)
        ids[mask] = self._flat[(starts + positions)[mask]]
        return ids, mask


class _Plan:
    """Which pairs stand in which batch.

    The pairs lie bucket by bucket, longest first; a batch is a span of them, and a row
    (start, stop, full number of rows, width) of `batches`. An epoch permutes the pairs
    inside each bucket, then the batches: their number and shapes stay.
    """

    def __init__(self, longest, max_tokens, widths, tokens_per_batch, drop_remainder):
        pairs = np.argsort(-longest, kind="stable")
        self._pairs = pairs[longest[pairs] <= max_tokens]
        buckets = np.searchsorted(widths, longest[self._pairs])
        self._spans, batches, left_out = [], [], 0
        for bucket in np.unique(buckets)[::-1]:
            start, stop = np.searchsorted(-buckets, [-bucket, 1 - bucket]).tolist()
            self._spans.append(slice(start, stop))
            rows = max(1, tokens_per_batch // widths[bucket])
            dropped = (stop - start) % rows if drop_remainder else 0
            left_out += dropped
            stop -= dropped
            for first in range(start, stop, rows):
                batches.append((first, min(first + rows, stop), rows, widths[bucket]))
        self.steps_per_epoch = len(batches)
        self._batches = np.array(batches, dtype=np.int64)
        self._check(left_out)
        self._shuffled = functools.lru_cache(maxsize=2)(self._shuffle)

    def batch(self, step, seed):
        """The pairs of a step, and the rows and the width of its bucket."""
        epoch, position = divmod(step, self.steps_per_epoch)
        pairs, order = self._pairs, None
        if seed is not None:
            pairs, order = self._shuffled(seed, epoch)
        start, stop, rows, width = self._batches[
            position if order is None else order[position]
        ]
        return pairs[start:stop], rows, width

    @property
    def shapes(self):
        """The (rows, width) of every bucket with a batch."""
        return {(rows, width) for _, _, rows, width in self._batches.tolist()}

    def _shuffle(self, seed, epoch):
        random = np.random.default_rng([seed, epoch])
        pairs = [random.permutation(self._pairs[span]) for span in self._spans]
        return np.concatenate(pairs), random.permutation(self.steps_per_epoch)

    def _check(self, left_out):
        total = len(self._pairs)
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


class _BatchMaker:
    """The padded arrays of a step."""

    def __init__(self, plan, sources, targets, tokenizer, static_shapes):
        self._plan, self._static = plan, static_shapes
        self._sources, self._targets = sources, targets
        self.pad_id, self._start_id = tokenizer.pad_id, tokenizer.start_id

    def __call__(self, step, seed):
        """Ids (B, S) and (B, T), and labels (B, T), all int32, of one step."""
        pairs, rows, width = self._plan.batch(int(step), seed)
        source_width = target_width = width
        if not self._static:
            rows = len(pairs)
            source_width = self._sources.lengths[pairs].max()
            target_width = self._targets.lengths[pairs].max()
        source_ids, _ = self._sources.padded(pairs, rows, source_width, self.pad_id)
        labels, mask = self._targets.padded(pairs, rows, target_width, self.pad_id)
        return source_ids, self._shifted(labels, mask), labels

    @property
    def shape(self):
        """(rows, width) when every batch has the same, else (None, None)."""
        shapes = self._plan.shapes if self._static else ()
        return tuple(shapes)[0] if len(shapes) == 1 else (None, None)

    def _shifted(self, labels, mask):
        """The start and all labels but each row's last: what the decoder is shown."""
        ids = np.full_like(labels, self.pad_id)
        ids[:, 1:][mask[:, 1:]] = labels[:, :-1][mask[:, 1:]]
        ids[mask[:, 0], 0] = self._start_id
        return ids


def _dataset(maker, plan, seed, first_step):
    """The steps, endless if there is a seed, as a dataset of batches."""
    import tensorflow as tf

    def arrays(step):
        make = functools.partial(maker, seed=seed)
        types = (tf.int32, tf.int32, tf.int32)
        found = tf.numpy_function(make, [step], types)
        return [tf.ensure_shape(ids, maker.shape) for ids in found]

    def weighted(source_ids, target_ids, labels):
        # TensorFlow ops make the weights, and before any strategy splits the batch:
        # over the whole batch's tokens, in memory that no replica writes to.
        mask = tf.cast(tf.not_equal(labels, maker.pad_id), tf.float32)
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        return inputs, labels, mask / tf.reduce_sum(mask)

    if seed is None:
        steps = tf.data.Dataset.range(first_step, plan.steps_per_epoch)
    else:
        steps = tf.data.Dataset.counter(first_step)
    parallel = {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": True}
    return steps.map(arrays, **parallel).map(weighted).prefetch(tf.data.AUTOTUNE)


def _default_widths(max_tokens):
    """8, 12, 16, 24, 32, 48, 64, ... below `max_tokens`, and `max_tokens`."""
    steps = (part << power for power in range(30) for part in (8, 12))
    return (*itertools.takewhile(lambda width: width < max_tokens, steps), max_tokens)


def _check_widths(widths, max_tokens):
    rising = all(one < other for one, other in itertools.pairwise((0, *widths)))
    if not (widths and rising and widths[-1] >= max_tokens):
        raise ValueError(
            "`widths` must rise from at least 1 to at least `max_tokens`. "
            f"Received: widths={widths}, max_tokens={max_tokens}"
        )


def _at_least(least, **arguments):
    for name, value in arguments.items():
        if not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(
                f"`{name}` must be an integer of at least {least}. Received: {value}"
            )


def _checked(ids, size):
    for id_ in ids[(ids < 0) | (ids >= size)]:
        raise ValueError(f"Id {id_} is outside the tokenizer's vocabulary of {size}.")
    return ids


def _warn_too_long(line_numbers, total, max_tokens):
    warnings.warn(
        f"{len(line_numbers)} of {total} pairs are longer than {max_tokens} tokens and "
        f"are left out: lines {some_of(line_numbers)}.",
        stacklevel=3,
    )
