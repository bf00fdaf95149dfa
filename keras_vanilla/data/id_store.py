"""A corpus's pairs as ids, each pair read by its number."""

import itertools
import math

import numpy as np

LINES_AT_ONCE = 10_000


class EncodedPairs:
    """The ids of every pair of a corpus, in memory.

    `batches` and its plan know pairs by what is public here: a corpus may keep its ids
    elsewhere.

    Args:
        corpus: ParallelCorpus.
        tokenizer: Tokenizer.
    Raises:
        ValueError: if an id is outside the tokenizer's vocabulary.
    """

    max_tokens = math.inf  # no pair is left out before

    def __init__(self, corpus, tokenizer):
        self._line_numbers = corpus.line_numbers
        self._sides = (
            _Ids(corpus.sources, tokenizer.encode, tokenizer.vocabulary_size),
            _Ids(
                corpus.targets,
                tokenizer.encode_target,
                tokenizer.target_vocabulary_size,
            ),
        )
        self.longest = max(int(lengths.max()) for _, lengths in self.chunks())

    def __len__(self):
        return len(self._line_numbers)

    def chunks(self):
        """Walks over all: (number of the first pair, lengths (n, 2) of n pairs)."""
        for first in range(0, len(self), LINES_AT_ONCE):
            stop = min(first + LINES_AT_ONCE, len(self))
            yield first, self.lengths(np.arange(first, stop))

    def lengths(self, pairs):
        """Lengths of source and target of some pairs, (n, 2)."""
        return np.stack([side.lengths(pairs) for side in self._sides], axis=1)

    def read(self, pairs):
        """Source ids and target ids of some pairs, each one after the other, flat."""
        return [side.read(pairs) for side in self._sides]

    def line_numbers(self, pairs):
        """Where in the corpus some pairs stand."""
        return self._line_numbers[pairs]


class _Ids:
    """The ids of every line, one after the other in a flat array."""

    def __init__(self, lines, encode, size):
        chunks, lengths, lines = [], [], iter(lines)
        while chunk := list(itertools.islice(lines, LINES_AT_ONCE)):
            ids, counts = flat_ids(encode(chunk), size)
            chunks.append(ids)
            lengths.append(counts)
        self._flat = np.concatenate(chunks)
        self._ends = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])

    def lengths(self, pairs):
        return self._ends[pairs + 1] - self._ends[pairs]

    def read(self, pairs):
        starts, lengths = self._ends[pairs], self.lengths(pairs)
        moves = starts - (np.cumsum(lengths) - lengths)
        return self._flat[np.arange(lengths.sum()) + np.repeat(moves, lengths)]


def flat_ids(rows, size):
    """The ids of all rows one after the other, int32, and the length of each row.

    Raises:
        ValueError: if an id is not below `size`.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    ids = np.fromiter(itertools.chain.from_iterable(rows), np.int64, lengths.sum())
    for id_ in ids[(ids < 0) | (ids >= size)]:
        raise ValueError(f"Id {id_} is outside the tokenizer's vocabulary of {size}.")
    return ids.astype(np.int32), lengths
