"""Translates texts in batches of similar length, keeping their order."""

import functools
import itertools
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import keras
import numpy as np

from keras_vanilla._checks import some_of
from keras_vanilla._out_of_memory import is_out_of_memory
from keras_vanilla._progress import Progress
from keras_vanilla._readable import check_finite_weights
from keras_vanilla.decoding import CompiledSearch, DecodingConfig, run_search
from keras_vanilla.decoding.attended_source import ATTENDED
from keras_vanilla.decoding.hypothesis_end import output_length, until_end
from keras_vanilla.models.transformer import Transformer
from keras_vanilla.tokenizer import TokenizerProtocol
from keras_vanilla.tokenizer.protocol import tokens_before_text
from keras_vanilla.translation.buckets import (
    bucket_rows,
    bucket_width,
    length_buckets,
    pad_rows,
)
from keras_vanilla.translation.doubts import doubts_of
from keras_vanilla.translation.piece_texts import known_share
from keras_vanilla.translation.required_terms import RequiredTerms

WINDOW = 4096  # number of texts that are sorted by length together
IN_FLIGHT = 3  # batches, each with a cache of its own


class Hypothesis(NamedTuple):
    """One translation of a text.

    Fields:
        text: str.
        score: float or None. The log-probability, minus 30 for each misplaced term, in
            beam search divided by the length normalization; None for a text that is
            split into sentences.
        ids: list of int. Target ids, with the end if there is one.
        ended: bool. False if the longest length was reached before an end.
        unmet: list of str. Required translations of terms that are missing.
        doubts: list of str. What speaks against the translation, see `doubts_of`, and
            "misplaced" if a required term stands where its source is not read.
            "unlikely" is only judged without terms and prefix.
    """

    text: str
    score: float | None
    ids: list[int]
    ended: bool
    unmet: Sequence[str] = ()
    doubts: Sequence[str] = ()


class _Row(NamedTuple):
    """A text, its source ids, the ids of its prefix, and what is required."""

    text: str
    ids: Sequence[int]
    prefix: Sequence[int]
    terms: dict[str, list]


class BatchTranslator:
    """Maps the source ids of texts to hypotheses, in batches.

    Args:
        model: Transformer.
        tokenizer: TokenizerProtocol.
        compiled: CompiledSearch of the model.
        config: DecodingConfig. With `n_best`, each text gets this many hypotheses with
            scores; without it, one.
        progress: Progress that counts the texts, or None.
        required: RequiredTerms or None.
    Attributes:
        longest_output: int. The length of the longest output, including the end.
    Raises:
        ValueError: if the config's `max_length` is above the model's.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: TokenizerProtocol,
        compiled: CompiledSearch,
        config: DecodingConfig,
        progress: Progress | None = None,
        required: RequiredTerms | None = None,
    ):
        self.model, self.tokenizer, self.config = model, tokenizer, config
        self._compiled, self._progress = compiled, progress
        self._required = required
        self.longest_output = output_length(model, model.max_length, config.max_length)

    def stream(
        self,
        texts: Sequence[str],
        sources: Sequence,
        prefixes: Sequence[Sequence[int]] | None = None,
    ) -> Iterator[list[Hypothesis]]:
        """Yields a list of hypotheses, best first, for each text.

        Args:
            texts: list of str.
            sources: EncodedTexts of the texts, or lists of ids, each with its end.
            prefixes: lists of target ids without an end, one for each source, with
                which the hypotheses begin; or None.
        Raises:
            ValueError: if the model's logits are NaN.
        """
        for start in range(0, len(sources), WINDOW):
            indices = range(start, min(start + WINDOW, len(sources)))
            yield from self._window(
                [
                    _Row(
                        texts[i],
                        sources[i],
                        [] if prefixes is None else prefixes[i],
                        self._required.of_text(texts[i]) if self._required else {},
                    )
                    for i in indices
                ]
            )

    def search_batch(
        self,
        sources: Sequence,
        prefixes: Sequence[Sequence[int]] = (),
        terms: Sequence[dict[str, list]] = (),
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Searches one batch: target ids (B, n, L), scores (B, n), and notes.

        The notes are (B, n, L) if there are terms, otherwise None: the source token
        that each target token attends to most.

        Raises:
            ValueError: if an output is empty or has no end, because weights of the
                model are NaN or infinite.
        """
        inputs = {"source_ids": self._padded(sources, self.model.max_length)}
        if any(map(len, prefixes)):
            inputs["target_prefix"] = self._padded(prefixes, self.longest_output)
        if any(terms):
            inputs["terms"] = self._required.batch(
                *map(_with_last, (terms, sources, prefixes)),
                self.config.max_length,
                inputs["source_ids"].shape[1],
            )
        has_places = inputs.get("terms") is not None
        returned = {"return_notes" if has_places else "return_scores": True}
        results = self._compiled(run_search, **inputs, config=self.config, **returned)
        ids, scores, *notes = results
        attended = notes[0][ATTENDED] if notes else None
        if self.config.n_best is None:
            ids, scores = ids[:, None], scores[:, None]
            attended = None if attended is None else attended[:, None]
        ids, scores = ids[: len(sources)], scores[: len(sources)]
        is_end = ids == self.model.end_id
        if is_end[..., 0].any() or not is_end.any(axis=-1).all():
            check_finite_weights(self.model)
        return ids, scores, attended

    def _padded(self, rows, longest):
        """Pads rows to an array of `bucket_rows` and `bucket_width`."""
        width = min(bucket_width(rows), longest)
        return pad_rows(_with_last(rows), width, self.model.pad_id)

    def _window(self, rows):
        results = [[Hypothesis("", 0.0, [], True, list(row.terms))] for row in rows]
        # A text without pieces (only an end, or a language code and an end) has an
        # empty translation, unless there is a prefix.
        blank = 1 + tokens_before_text(self.tokenizer)
        searched = {
            i: row.ids
            for i, row in enumerate(rows)
            if len(row.ids) > blank or len(row.prefix)
        }
        self._count(len(rows) - len(searched))
        batches = [*length_buckets(searched, self.config.beam_size)]
        search = functools.partial(self._search, rows)
        for batch in _in_flight(search, batches[::-1]):  # the longest first
            for i, hypotheses in batch.items():
                results[i] = hypotheses
            self._count(len(batch))
        return results

    def _search(self, rows, indices):
        """Returns the hypotheses of each row of a batch, by its index.

        A batch that does not fit into memory is halved.
        """
        batch = [rows[i] for i in indices]
        try:
            results = self.search_batch(
                [row.ids for row in batch],
                [row.prefix for row in batch],
                [row.terms for row in batch],
            )
        except Exception as error:
            if len(indices) == 1 or not is_out_of_memory(error):
                raise
        else:
            return dict(zip(indices, self._read(batch, results), strict=True))
        middle = len(indices) // 2
        halves = indices[:middle], indices[middle:]
        first, second = (self._search(rows, half) for half in halves)
        return first | second

    def _count(self, number):
        if self._progress is not None and number:
            self._progress.update(number)

    def _read(self, rows, results):
        """Yields the hypotheses of each row from the result of `search_batch`."""
        ids, scores, attended = results
        texts = iter(self.tokenizer.decode(ids.reshape(-1, ids.shape[2])))
        for b, row in enumerate(rows):
            hypotheses, known = [], known_share(self.tokenizer, row.ids[:-1])
            places = None
            if row.terms and attended is not None:
                places = self._required.places(row.terms, row.ids)
            for n, (beam_ids, score) in enumerate(
                zip(ids[b].tolist(), scores[b].tolist(), strict=True)
            ):
                text, kept = next(texts), until_end(beam_ids, self.model)
                if score == -np.inf:  # there are fewer hypotheses than `n_best`
                    continue
                unmet, probability = (), None
                if row.terms:
                    unmet = self._required.unmet(row.terms, kept, text)
                elif not len(row.prefix):  # forced tokens say nothing of the others
                    mean = self.config.mean_log_probs(score, max(len(kept), 1))
                    probability = math.exp(mean)
                doubts = doubts_of(row.text, text, probability, known)
                if places is not None and not self._required.are_placed(
                    row.terms, places, kept, attended[b, n]
                ):
                    doubts.append("misplaced")
                ended = self.model.end_id in kept
                hypotheses.append(Hypothesis(text, score, kept, ended, unmet, doubts))
            if not hypotheses:
                raise ValueError(
                    "The model's logits are not numbers: its training has diverged."
                )
            yield hypotheses


def _in_flight(search, batches):
    """Yields the results of batches; on TensorFlow, several are searched at a time.

    While one is at an operator for one core, another uses the others.
    """
    if keras.backend.backend() != "tensorflow" or len(batches) < 2:
        yield from map(search, batches)
        return
    threads = ThreadPoolExecutor(IN_FLIGHT)
    try:
        yield from threads.map(search, batches)
    finally:
        threads.shutdown(cancel_futures=True)


def _with_last(rows):
    """Repeats the last row until there are `bucket_rows`."""
    return [*rows, *[rows[-1]] * (bucket_rows(len(rows)) - len(rows))]


def warn_unfinished(ended: Sequence[bool]) -> None:
    """Warns about translations without an end.

    Args:
        ended: list of bool, one for each text.
    Warns:
        UserWarning: if any value is False.
    """
    unfinished = [number for number, end in enumerate(ended, start=1) if not end]
    if unfinished:
        warnings.warn(
            f"{len(unfinished)} of {len(ended)} translations reached their longest "
            f"length without an end: texts {some_of(unfinished)}",
            stacklevel=3,
        )


def warn_doubtful(doubts: Sequence[Sequence[str]]) -> None:
    """Warns about doubtful translations.

    Args:
        doubts: lists of `doubts_of`, one for each text.
    Warns:
        UserWarning: if any list has a doubt.
    """
    numbers = [number for number, some in enumerate(doubts, start=1) if some]
    if numbers:
        counts = Counter(itertools.chain(*doubts)).most_common()
        kinds = ", ".join(f"{count} {doubt}" for doubt, count in counts)
        warnings.warn(
            f"{len(numbers)} of {len(doubts)} translations are doubtful ({kinds}): "
            f"texts {some_of(numbers)}",
            stacklevel=3,
        )
