"""The ids of the pairs of a corpus, by pair number."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_vanilla.tokenizer import TokenizerProtocol

if TYPE_CHECKING:
    from keras_vanilla.data.corpus import ParallelCorpus

PAIRS_AT_ONCE = 10_000


class IdStore:
    """The ids of all pairs of a corpus, in memory or in a memory-mapped file.

    The sequences of all pairs are in one array, one after the other, source before
    target: sequence k is ids[offsets[k] : offsets[k + 1]], and pair i has the sequences
    2 i and 2 i + 1.

    Args:
        ids: integer array.
        offsets: int64 array (2 * pairs + 1,).
        longest: int. Length of the longest sequence.
        line_numbers: int64 array (pairs,). Line number of each pair in the corpus; None
            means 1, 2, 3, ...
    """

    def __init__(
        self,
        ids: np.ndarray,
        offsets: np.ndarray,
        longest: int,
        line_numbers: np.ndarray | None = None,
    ):
        self._ids, self._offsets, self._line_numbers = ids, offsets, line_numbers
        self.longest = longest

    def __len__(self) -> int:
        return len(self._offsets) // 2

    def chunks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields (number of the first pair, lengths (n, 2)) of n consecutive pairs."""
        for first in range(0, len(self), PAIRS_AT_ONCE):
            last = min(first + PAIRS_AT_ONCE, len(self))
            yield first, self.lengths(np.arange(first, last))

    def lengths(self, pairs: np.ndarray) -> np.ndarray:
        """Lengths of source and target of some pairs, (n, 2)."""
        return np.diff(self._offsets[2 * pairs[:, None] + np.arange(3)])

    def read(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Source ids and target ids of some pairs, int32, flat in the pairs' order."""
        source, target = (self._sequences(2 * pairs + side) for side in (0, 1))
        return source, target

    def line_numbers(self, pairs: np.ndarray) -> np.ndarray:
        """Line numbers in the corpus of some pairs."""
        return pairs + 1 if self._line_numbers is None else self._line_numbers[pairs]

    def _sequences(self, indices):
        starts = self._offsets[indices]
        lengths = self._offsets[indices + 1] - starts
        moves = starts - (np.cumsum(lengths) - lengths)
        positions = np.arange(lengths.sum()) + np.repeat(moves, lengths)
        return self._ids[positions].astype(np.int32)


def flat_ids(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    tokenizer: TokenizerProtocol,
) -> tuple[np.ndarray, np.ndarray]:
    """Joins the sequences of pairs in the order of an `IdStore`.

    Args:
        sources: ids of each source.
        targets: ids of each target.
        tokenizer: TokenizerProtocol that produced the ids.
    Returns:
        The ids, uint16 if both vocabularies are small enough, otherwise int32; and the
        length of each sequence, int64.
    Raises:
        ValueError: if an id is outside the tokenizer's vocabulary.
    """
    sizes = tokenizer.vocabulary_size, tokenizer.target_vocabulary_size
    rows = list(itertools.chain.from_iterable(zip(sources, targets, strict=True)))
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    ids = np.fromiter(itertools.chain.from_iterable(rows), np.int64, lengths.sum())
    limits = np.repeat(np.tile(sizes, len(sources)), lengths)
    outside = np.flatnonzero((ids < 0) | (ids >= limits))
    if len(outside):
        raise ValueError(
            f"Id {ids[outside[0]]} is outside the tokenizer's vocabulary of "
            f"{limits[outside[0]]}."
        )
    return ids.astype(id_dtype(tokenizer)), lengths


def id_dtype(tokenizer: TokenizerProtocol) -> np.dtype:
    """The smallest type that holds every id of source and target."""
    largest = max(tokenizer.vocabulary_size, tokenizer.target_vocabulary_size)
    return np.dtype("<u2" if largest <= 1 << 16 else "<i4")


def encode_corpus(corpus: "ParallelCorpus", tokenizer: TokenizerProtocol) -> IdStore:
    """Encodes every pair of a corpus, in memory.

    Raises:
        ValueError: if an id is outside the tokenizer's vocabulary.
    """
    ids, lengths = bytearray(), [np.zeros(1, dtype=np.int64)]
    for first in range(0, len(corpus), PAIRS_AT_ONCE):
        chunk = slice(first, first + PAIRS_AT_ONCE)
        sources = tokenizer.encode(corpus.sources[chunk])
        targets = tokenizer.encode_target(corpus.targets[chunk])
        more, lengths_of_more = flat_ids(sources, targets, tokenizer)
        ids += more.tobytes()
        lengths.append(lengths_of_more)
    lengths = np.concatenate(lengths)
    return IdStore(
        np.frombuffer(ids, id_dtype(tokenizer)),
        np.cumsum(lengths),
        int(lengths.max()),
        corpus.line_numbers,
    )
