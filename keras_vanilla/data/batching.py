"""Pairs of sentences to batches of about equal length for `fit`."""

import itertools
import warnings
from collections.abc import Sequence

from keras_vanilla._checks import check_integer, some_of
from keras_vanilla.data.batch_maker import BatchMaker
from keras_vanilla.data.bucketing import Plan, Survey
from keras_vanilla.data.cache import TokenCache
from keras_vanilla.data.corpus import ParallelCorpus
from keras_vanilla.data.step_stream import StepStream


def batches(
    corpus: ParallelCorpus | TokenCache,
    tokenizer,
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
        corpus: ParallelCorpus or TokenCache.
        tokenizer; a cache's is the one that it was made with.
        tokens_per_batch: int. Target positions of a batch over all devices, padding
            counted; a batch has `max(1, tokens_per_batch // width)` pairs. Rows of
            weight 0 after them make their number a multiple of the replicas', of the
            `tf.distribute` or `keras.distribution` in force.
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
        `dataset.line_numbers(step)` are those of a step's pairs; with `shuffle`,
        iterators opened after `dataset.start_at(step)` begin at that step.
    Raises:
        ValueError: if a number is out of its range or above a cache's, `widths` do not
            rise to `max_tokens`, no pair or no batch is left, an id is outside the
            tokenizer's vocabulary, a cache was made with another tokenizer, or replicas
            cannot be split evenly over processes.
    Example:
        train = batches(corpus, tokenizer)
        model.fit(train, steps_per_epoch=train.steps_per_epoch, epochs=10)
    """
    from keras_vanilla.distribution.replicas import as_strategy_takes, replicas_in_force

    check_integer("tokens_per_batch", tokens_per_batch, 1)
    check_integer("max_tokens", max_tokens, 2)
    check_integer("seed", seed, 0)
    check_integer("first_step", first_step, 0)
    widths = _default_widths(max_tokens) if widths is None else tuple(widths)
    _check_widths(widths, max_tokens)

    examples = corpus.examples(tokenizer)
    if max_tokens > examples.max_tokens:
        raise ValueError(
            f"{corpus.origin}: `max_tokens` must be at most {examples.max_tokens}, of "
            f"which its cache was made. Received: {max_tokens}"
        )
    survey = Survey(examples, max_tokens)
    if survey.too_long:
        _warn_too_long(survey.too_long, len(corpus), max_tokens)
    plan = Plan(examples, survey, widths, tokens_per_batch, drop_remainder)
    replicas = replicas_in_force()
    maker = BatchMaker(plan, examples, tokenizer, static_shapes, replicas)

    stream = StepStream(maker, seed if shuffle else None, first_step)
    dataset = as_strategy_takes(stream.dataset(), replicas)
    dataset.steps_per_epoch = plan.steps_per_epoch
    dataset.tokens_per_epoch = survey.target_tokens
    dataset.report = {reason: list(lines) for reason, lines in corpus.report.items()}
    if survey.too_long:
        before = corpus.report.get("too long", [])
        dataset.report["too long"] = sorted(before + survey.too_long)
    dataset.start_at, dataset.line_numbers = stream.start_at, stream.line_numbers
    dataset.first_step, dataset.endless = stream.first_step, shuffle
    return dataset


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


def _warn_too_long(line_numbers, total, max_tokens):
    warnings.warn(
        f"{len(line_numbers)} of {total} pairs are longer than {max_tokens} tokens and "
        f"are left out: lines {some_of(line_numbers)}.",
        stacklevel=3,
    )
