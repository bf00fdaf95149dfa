"""The ids of a corpus's pairs, each pair found by its number."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from keras_vanilla.tokenizer import TokenizerProtocol

if TYPE_CHECKING:
    from keras_vanilla.data.corpus import ParallelCorpus

LINES_AT_ONCE = 10_000


@dataclass(frozen=True)
class FlatIds:
    """The ids of many sequences, one after the other.

    Args:
        ids: integer array.
        offsets: int64 array (n + 1,). Sequence i is ids[offsets[i] : offsets[i + 1]].
    """

    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], size: int) -> "FlatIds":
        """Joins sequences of ids.

        Args:
            rows: lists of int.
            size: int. All ids are below it.
        Raises:
            ValueError: if an id is not.
        """
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.fromiter(itertools.chain.from_iterable(rows), np.int64, lengths.sum())
        for id_ in ids[(ids < 0) | (ids >= size)]:
            raise ValueError(
                f"Id {id_} is outside the tokenizer's vocabulary of {size}."
            )
        dtype = np.uint16 if size <= 1 << 16 else np.int32
        return cls(ids.astype(dtype), np.concatenate([[0], np.cumsum(lengths)]))

    @classmethod
    def joined(cls, chunks: Sequence["FlatIds"]) -> "FlatIds":
        """The sequences of all chunks, of which there is at least one."""
        starts = np.cumsum([0, *(len(chunk.ids) for chunk in chunks)])
        offsets = [
            chunk.offsets[:-1] + start
            for chunk, start in zip(chunks, starts[:-1], strict=True)
        ]
        return cls(
            np.concatenate([chunk.ids for chunk in chunks]),
            np.concatenate([*offsets, starts[-1:]]),
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """Length of each of some sequences."""
        return self.offsets[rows + 1] - self.offsets[rows]

    def read(self, rows: np.ndarray) -> np.ndarray:
        """The ids of some sequences, one after the other, int32."""
        lengths = self.lengths(rows)
        moves = self.offsets[rows] - (np.cumsum(lengths) - lengths)
        places = np.arange(lengths.sum()) + np.repeat(moves, lengths)
        return self.ids[places].astype(np.int32)


@dataclass(frozen=True)
class IdShard:
    """Consecutive pairs of a corpus.

    Args:
        source: FlatIds.
        target: FlatIds of as many sequences.
        line_numbers: integer array. Where each pair is in the shard's text.
        lines_before: int. Lines of the corpus before the shard's text.
    """

    source: FlatIds
    target: FlatIds
    line_numbers: np.ndarray
    lines_before: int = 0

    def __len__(self) -> int:
        return len(self.line_numbers)

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of source and target of some pairs, (n, 2)."""
        return np.stack([self.source.lengths(rows), self.target.lengths(rows)], axis=1)


class IdStore:
    """The ids of all pairs of a corpus, in memory or in memory-mapped files.

    Args:
        shards: IdShards in the order of the corpus.
        longest: int. Length of the longest sequence.
        max_tokens: int. Longer pairs were left out before; `math.inf` means none were.
    """

    def __init__(
        self, shards: Sequence[IdShard], longest: int, max_tokens: float = math.inf
    ):
        self.longest, self.max_tokens = longest, max_tokens
        self._shards = list(shards)
        self._first = np.cumsum([0, *map(len, self._shards)])  # pair of each shard

    def __len__(self) -> int:
        return int(self._first[-1])

    def chunks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields (number of the first pair, lengths (n, 2)) of n consecutive pairs."""
        for shard, first in zip(self._shards, self._first.tolist(), strict=False):
            for start in range(0, len(shard), LINES_AT_ONCE):
                rows = np.arange(start, min(start + LINES_AT_ONCE, len(shard)))
                yield first + start, shard.lengths(rows)

    def lengths(self, pairs: np.ndarray) -> np.ndarray:
        """Lengths of source and target of some pairs, (n, 2)."""
        lengths = np.empty((len(pairs), 2), dtype=np.int64)
        for shard, rows, where in self._by_shard(pairs):
            lengths[where] = shard.lengths(rows)
        return lengths

    def read(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Source ids and target ids of some pairs, each flat in the pairs' order."""
        if len(self._shards) == 1:
            (shard,) = self._shards
            return shard.source.read(pairs), shard.target.read(pairs)
        lengths = self.lengths(pairs)
        starts = np.cumsum(lengths, axis=0) - lengths
        totals = lengths.sum(axis=0)
        sources, targets = (np.empty(total, dtype=np.int32) for total in totals)
        for shard, rows, where in self._by_shard(pairs):
            sides = (sources, shard.source), (targets, shard.target)
            for side, (flat, ids) in enumerate(sides):
                n = lengths[where, side]
                moves = starts[where, side] - (np.cumsum(n) - n)
                flat[np.arange(n.sum()) + np.repeat(moves, n)] = ids.read(rows)
        return sources, targets

    def line_numbers(self, pairs: np.ndarray) -> np.ndarray:
        """Line numbers in the corpus of some pairs."""
        numbers = np.empty(len(pairs), dtype=np.int64)
        for shard, rows, where in self._by_shard(pairs):
            numbers[where] = shard.lines_before + shard.line_numbers[rows]
        return numbers

    def _by_shard(self, pairs):
        """(shard, its rows, their indices in `pairs`) of each shard with a pair."""
        if len(self._shards) == 1:
            yield self._shards[0], pairs, slice(None)
            return
        numbers = np.searchsorted(self._first, pairs, side="right") - 1
        for number in np.unique(numbers):
            where = np.flatnonzero(numbers == number)
            yield self._shards[number], pairs[where] - self._first[number], where


def encode_corpus(corpus: "ParallelCorpus", tokenizer: TokenizerProtocol) -> IdStore:
    """The ids of every pair of a corpus, in memory.

    Raises:
        ValueError: if an id is outside the tokenizer's vocabulary.
    """
    shard = IdShard(
        _encoded(corpus.sources, tokenizer.encode, tokenizer.vocabulary_size),
        _encoded(
            corpus.targets, tokenizer.encode_target, tokenizer.target_vocabulary_size
        ),
        corpus.line_numbers,
    )
    rows = np.arange(len(shard))
    return IdStore([shard], longest=int(shard.lengths(rows).max()))


def _encoded(lines, encode, size):
    chunks, lines = [], iter(lines)
    while chunk := list(itertools.islice(lines, LINES_AT_ONCE)):
        chunks.append(FlatIds.of(encode(chunk), size))
    return FlatIds.joined(chunks)
