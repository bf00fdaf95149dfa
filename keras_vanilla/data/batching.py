"""Batches of similar length for `fit`."""

import contextlib
import copy
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_vanilla._checks import check_integer, extra_missing
from keras_vanilla.data.bucketing import Plan, Survey, bucket_widths
from keras_vanilla.data.corpus import ParallelCorpus
from keras_vanilla.data.filters import PairFilters, shared_sources
from keras_vanilla.data.noise import BESIDE, IN_ALL, Noise
from keras_vanilla.data.padding import BatchMixture, BatchPadder
from keras_vanilla.data.sampled_ids import SampledIds
from keras_vanilla.data.token_cache import TokenCache
from keras_vanilla.tokenizer import TokenizerProtocol
from keras_vanilla.tokenizer.protocol import BATCH_ATTRIBUTES, check_tokenizer

if TYPE_CHECKING:
    import tensorflow as tf

NumpyBatch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def batches(
    corpus: ParallelCorpus | TokenCache,
    tokenizer: TokenizerProtocol,
    tokens_per_batch: int = 4096,
    max_tokens: int = 256,
    widths: Sequence[int] | None = None,
    shuffle: bool = True,
    seed: int = 0,
    static_shapes: bool | None = None,
    drop_remainder: bool = False,
    first_step: int = 0,
    max_length_ratio: float | None = None,
    drop_duplicates: bool = False,
    sampling: float | None = None,
    noise: bool = False,
) -> "Batches":
    """Creates the batches of a corpus for `Transformer.fit`.

        target_ids = [start, y_1, ..., y_n-1]    labels = [y_1, ..., y_n = end]
        weights = 1 at the labels, 0 at their padding

    Pairs are bucketed by the length of their longer sequence, and each batch comes from
    one bucket. Every epoch has `steps_per_epoch` batches and contains every pair once.
    With `shuffle` the batches are infinite, and step n depends only on (seed, n).
    Without it there is one pass, longest pairs first.

    Pairs longer than `max_tokens`, and those without tokens on one side, are left out
    with a warning; `report` maps each reason to the line numbers of such pairs.

    Args:
        corpus: ParallelCorpus or TokenCache.
        tokenizer: TokenizerProtocol. For a cache, the tokenizer it was made with.
        tokens_per_batch: int. Target positions per batch over all devices, including
            padding; a batch has `max(1, tokens_per_batch // width)` pairs. Rows of
            weight 0 are added so that the number of rows is a multiple of the number of
            replicas of the current `tf.distribute` or `keras.distribution`.
        max_tokens: int. Longest sequence, including its end, on either side.
        widths: increasing ints, the longest sequence of each bucket; None means 8, 12,
            16, 24, 32, ... up to `max_tokens`; under a `TPUStrategy`, only
            `max_tokens`.
        shuffle: bool. Repeat the epochs without end, each in a new order.
        seed: int. Seed of the order.
        static_shapes: bool. Pad to the bucket's width and number of rows (with rows of
            weight 0), so that each bucket has one shape. None means True where every
            shape is compiled: on the JAX backend and under a `TPUStrategy`.
        drop_remainder: bool. Leave out incomplete batches, with a warning.
        first_step: int. The step to start at, to resume a run.
        max_length_ratio: float. Leave out pairs in which one side has more than this
            many times the tokens of the other, with a warning; None keeps them.
        drop_duplicates: bool. Leave out pairs that have the ids of an earlier pair,
            with a warning.
        sampling: float. Draw a new segmentation of each text in every epoch, from
            (seed, step); the value is the `alpha` of `Tokenizer.samplers`. None uses
            the best segmentation, by which pairs are always left out, counted and
            bucketed.
        noise: bool. Change some sources as people write, and add batches with upper
            case and with things to copy. All are drawn anew in every epoch, from
            (seed, step), see `keras_vanilla.data.noise`.
    Returns:
        Batches.
    Raises:
        TypeError: if `corpus` or `tokenizer` has the wrong type.
        ValueError: if a number is out of range, `widths` do not increase to
            `max_tokens`, no pairs or batches remain, an id is outside
            the tokenizer's vocabulary, a cache was made with another tokenizer,
            replicas cannot be split evenly over processes, `sampling` is given for a
            tokenizer without `samplers`, or `noise` for one that is not a `Tokenizer`
            or without `shuffle`.
    Example:
        train = batches(corpus, tokenizer)
        model.fit(train, epochs=10)
    """
    from keras_vanilla.distribution.replicas import replicas_in_force
    from keras_vanilla.distribution.strategies import default_shapes

    check_corpus("corpus", corpus)
    check_tokenizer(tokenizer, BATCH_ATTRIBUTES)
    if noise and not shuffle:
        raise ValueError("`noise` is for endless batches. Received: shuffle=False")
    tokens_per_batch = check_integer("tokens_per_batch", tokens_per_batch, 1)
    max_tokens = check_integer("max_tokens", max_tokens, 2)
    seed = check_integer("seed", seed, 0)
    first_step = check_integer("first_step", first_step, 0)
    static_shapes, widths = default_shapes(static_shapes, widths, max_tokens)
    widths = bucket_widths(widths, max_tokens)
    filters = PairFilters(max_tokens, max_length_ratio, drop_duplicates)

    store = corpus.id_store(tokenizer)
    survey = _surveyed(corpus, store, filters)
    replicas = replicas_in_force()

    def padder(kind: Noise | None) -> BatchPadder:
        sampled = None
        if sampling is not None or kind is not None:
            kept = np.flatnonzero(survey.kept)
            sampled = SampledIds(
                store, kept, tokenizer, sampling, seed, max_tokens, kind
            )
        growth = sampled.growth if sampled else 1.0
        plan = Plan(store, survey, widths, tokens_per_batch, drop_remainder, growth)
        return BatchPadder(plan, store, tokenizer, static_shapes, replicas, sampled)

    kinds = (IN_ALL, *BESIDE) if noise else (None,)
    padders = list(map(padder, kinds))
    shares = [1.0 if kind is None else kind.share for kind in kinds]
    growths = [each.target_growth for each in padders]
    tokens = survey.target_tokens * float(np.dot(shares, growths))
    return Batches(
        BatchMixture(padders, shares[1:]) if noise else padders[0],
        seed=seed if shuffle else None,
        first_step=first_step,
        tokens_per_epoch=round(tokens),
        report=_report(corpus, survey),
        digest=_digest(
            corpus.digest,
            tokenizer.digest,
            tokens_per_batch,
            max_tokens,
            [int(width) for width in widths],
            seed if shuffle else None,
            static_shapes,
            bool(drop_remainder),
            *filters.settings(),
            *([] if sampling is None else ["sampling", float(sampling)]),
            *(kind[:2] for kind in kinds if kind is not None),
        ),
        replicas=replicas,
    )


class Batches:
    """The batches of a corpus, created by `batches`, for `Transformer.fit`.

    For other models:

        model.fit(train.dataset(), steps_per_epoch=train.steps_per_epoch)

    Iterating gives NumPy batches, without TensorFlow unless `map` was used: infinite
    with `shuffle`, otherwise one pass. Each batch, and each element of `dataset()`, is

        ({"source_ids": (B, S), "target_ids": (B, T)}, labels (B, T), weights (B, T))

    with int32 ids and float32 weights of 0 and 1. Every new iterator starts at
    `first_step()`. `len` is `steps_per_epoch`, even for infinite batches.

    Attributes:
        steps_per_epoch: int. Number of batches that contain every pair once.
        tokens_per_epoch: int. Number of labels per epoch, without padding; an estimate
            with noise or sampling.
        report: dict of reason -> line numbers of the pairs left out.
        static_shapes: bool. Whether each bucket has one shape.
        endless: bool. Whether epochs repeat without end, each in a new order.
        digest: str. SHA-256 of everything that determines the batches: text, tokenizer,
            sizes, seed, and the names of functions given to `map`.
    """

    def __init__(
        self,
        padder: BatchPadder | BatchMixture,
        *,
        seed: int | None,
        first_step: int,
        tokens_per_epoch: int,
        report: dict[str, list[int]],
        digest: str,
        replicas: Any,
    ):
        self.steps_per_epoch = padder.steps_per_epoch
        self.tokens_per_epoch, self.report = tokens_per_epoch, report
        self.static_shapes = padder.static_shapes
        self.endless, self.digest = seed is not None, digest
        self._padder, self._seed, self._first_step = padder, seed, first_step
        self._replicas, self._functions = replicas, ()
        self._strategy = _strategy_in_force() if replicas.in_other_processes else None

    def dataset(self) -> "tf.data.Dataset":
        """Creates a dataset for `keras.Model.fit` with any backend.

        Its cardinality is infinite if `endless`, otherwise the number of batches. Under
        a `MultiWorkerMirroredStrategy` it is a distributed dataset.
        """
        from keras_vanilla.distribution.replicas import distributed_dataset

        dataset = self._rows_of_this_process(self.first_step)
        with self._strategy.scope() if self._strategy else contextlib.nullcontext():
            return distributed_dataset(dataset, self._replicas)

    def map(self, function: Callable) -> "Batches":
        """Applies a function to each batch.

        The function is applied inside the dataset, so the result can be resumed exactly
        at any step, like these batches.

        Args:
            function: called with the inputs, labels and weights of one batch, as
                TensorFlow tensors; returns the new inputs, labels and weights. It must
                be deterministic and give the same result for the same batch.
        Returns:
            Batches, which start at the same step.
        """
        named = function if hasattr(function, "__qualname__") else type(function)
        name = f"{named.__module__}.{named.__qualname__}"
        mapped = copy.copy(self)
        mapped.digest = _digest(self.digest, name)
        mapped._functions = (*self._functions, function)
        return mapped

    def start_at(self, step: int) -> None:
        """Sets the step at which new iterators start.

        Args:
            step: int. Number of the step, from 0, over all epochs.
        Raises:
            ValueError: if the step is negative, or the batches are not infinite.
        """
        check_integer("step", step, 0)
        if not self.endless:
            raise ValueError(
                "`start_at` needs endless batches (`shuffle=True`). Received: "
                f"step={step} for one pass"
            )
        self._first_step = int(step)

    def first_step(self) -> int:
        """The step at which a new iterator starts."""
        return self._first_step

    def line_numbers(self, step: int) -> list[int]:
        """Line numbers of the pairs of a step in the corpus, over all replicas.

        Args:
            step: int. Number of the step, from 0, over all epochs.
        Raises:
            ValueError: if the step is negative.
        """
        return self._padder.line_numbers(check_integer("step", step, 0), self._seed)

    def shared_sources(self, other: "Batches") -> list[int]:
        """Line numbers of the pairs whose source sentence is also in other batches.

        Args:
            other: Batches with the same tokenizer, such as the training data.
        """
        return shared_sources(self._padder.store, other._padder.store)

    def __len__(self) -> int:
        return self.steps_per_epoch

    def __iter__(self) -> Iterator[NumpyBatch]:
        first = self._first_step
        if self._functions:
            return self._rows_of_this_process(lambda: first).as_numpy_iterator()
        return self._numpy_batches(first)

    def _numpy_batches(self, first):
        endless = itertools.count(first)
        one_pass = range(first, self.steps_per_epoch)
        for step in endless if self.endless else one_pass:
            source_ids, target_ids, labels = self._arrays(step)
            weights = (labels != self._padder.pad_id).astype(np.float32)
            inputs = {"source_ids": source_ids, "target_ids": target_ids}
            yield inputs, labels, weights

    def _rows_of_this_process(self, first_step):
        try:
            from keras_vanilla.data.tf_pipeline import batch_dataset
        except ModuleNotFoundError as error:
            raise extra_missing(
                "Training data", "tensorflow, on every backend", "tensorflow"
            ) from error

        return batch_dataset(
            self._arrays,
            first_step,
            None if self.endless else self.steps_per_epoch,
            self._padder.shape,
            self._padder.pad_id,
            self._functions,
        )

    def _arrays(self, step):
        return self._padder.arrays(step, self._seed)


def check_corpus(name: str, corpus: Any) -> None:
    """Refuses objects that are not a corpus.

    Args:
        name: str. The argument's name, for the error.
        corpus: the received value.
    Raises:
        TypeError: if it is neither a ParallelCorpus nor a TokenCache.
    """
    if not isinstance(corpus, (ParallelCorpus, TokenCache)):
        raise TypeError(
            f"`{name}` must be a ParallelCorpus or a TokenCache, such as "
            "ParallelCorpus.from_pairs(pairs) of a list of pairs. Received: a "
            f"{type(corpus).__name__}"
        )


def _surveyed(corpus, store, filters) -> Survey:
    """Selects the pairs to keep, and warns about those left out."""
    survey = Survey(store, filters)
    filters.warn(corpus.origin, len(store), survey.left_out)
    if not survey.kept.any():
        counts = [f"{len(lines)} {name}" for name, lines in survey.left_out.items()]
        raise ValueError(
            f"{corpus.origin}: no pair is left of {len(store)}: {', '.join(counts)}."
        )
    return survey


def _report(corpus, survey):
    """Line numbers of all pairs left out, by the corpus or here, for each reason."""
    report = {reason: list(lines) for reason, lines in corpus.report.items()}
    for reason, lines in survey.left_out.items():
        report[reason] = sorted(report.get(reason, []) + lines)
    return report


def _strategy_in_force():
    """The `tf.distribute` strategy whose processes share the batches, if any."""
    import keras

    if keras.backend.backend() != "tensorflow":
        return None
    import tensorflow as tf

    return tf.distribute.get_strategy()


def _digest(*values):
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
