"""Pairs that are left out of batches, and the reasons.

Repeated sentences are found by hashes of their ids. The hash of a sequence is the sum
of its ids, each multiplied by a random number for its position, modulo 2^64. With a
hundred million different pairs, a collision occurs in one of several thousand corpora.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from keras_vanilla._checks import check_choice, check_number, some_of
from keras_vanilla.data.id_store import IdStore

KEPT, EMPTY, TOO_LONG, LENGTH_RATIO, DUPLICATE = range(5)
REASONS = {
    EMPTY: "empty",
    TOO_LONG: "too long",
    LENGTH_RATIO: "length ratio",
    DUPLICATE: "duplicate",
}

SOURCE, TARGET = 0, 1


@dataclass(frozen=True)
class PairFilters:
    """Filters pairs by their ids.

    A pair without tokens on one side is always left out; for example, the tokenizer's
    normalisation may leave an empty text.

    Args:
        max_tokens: int. Longest sequence to keep.
        max_length_ratio: float. Largest ratio between the numbers of tokens of the two
            sides, not counting ends; None means no limit.
        drop_duplicates: bool. Keep only the first of equal pairs.
    Raises:
        ValueError: if a value is out of range.
    """

    max_tokens: int
    max_length_ratio: float | None = None
    drop_duplicates: bool = False

    def __post_init__(self):
        check_choice("drop_duplicates", self.drop_duplicates, [False, True])
        if self.max_length_ratio is not None:
            check_number("max_length_ratio", self.max_length_ratio, 1)

    def judge(self, store: IdStore) -> np.ndarray:
        """For each pair, `KEPT` or the reason to leave it out; uint8 (pairs,)."""
        chunks = [self._by_length(lengths) for _, lengths in store.chunks()]
        verdicts = np.concatenate(chunks or [np.empty(0, np.uint8)])
        if self.drop_duplicates:
            repeated = repeated_pairs(store, np.flatnonzero(verdicts == KEPT))
            verdicts[repeated] = DUPLICATE
        return verdicts

    def warn(self, origin: str, total: int, left_out: dict[str, list[int]]) -> None:
        """Warns about the pairs left out, once for each reason.

        Args:
            origin: str. Name of the corpus.
            total: int. Number of pairs in the corpus.
            left_out: line numbers of pairs, by reason.
        """
        most = self.max_length_ratio
        causes = {
            "empty": "have no token on one side",
            "too long": f"are longer than {self.max_tokens} tokens",
            "length ratio": f"have more than {most} times the tokens on one side",
            "duplicate": "occurred before",
        }
        for reason, lines in left_out.items():
            warnings.warn(
                f"{origin}: {len(lines)} of {total} pairs {causes[reason]} and are "
                f"left out: lines {some_of(lines)}.",
                stacklevel=4,
            )

    def settings(self) -> list:
        """The settings other than `max_tokens`; empty if they keep all pairs."""
        if self.max_length_ratio is None and not self.drop_duplicates:
            return []
        return [self.max_length_ratio, bool(self.drop_duplicates)]

    def _by_length(self, lengths):
        longest, shortest = lengths.max(axis=1), lengths.min(axis=1)
        ratios = (longest - 1) / np.maximum(shortest - 1, 1)
        uneven = ratios > (self.max_length_ratio or np.inf)
        return np.select(
            [shortest <= 1, longest > self.max_tokens, uneven],
            np.array([EMPTY, TOO_LONG, LENGTH_RATIO], dtype=np.uint8),
            np.uint8(KEPT),
        )


def repeated_pairs(store: IdStore, pairs: np.ndarray) -> np.ndarray:
    """Finds the pairs that are equal to an earlier one of the given pairs.

    Args:
        store: IdStore.
        pairs: increasing int array of pair numbers.
    """
    hashes = np.concatenate(list(_hashes(store, (SOURCE, TARGET))))[pairs]
    _, first = np.unique(hashes, return_index=True)
    repeated = np.ones(len(pairs), dtype=bool)
    repeated[first] = False
    return pairs[repeated]


def shared_sources(store: IdStore, other: IdStore) -> list[int]:
    """Line numbers of the pairs whose source sentence is also in another corpus.

    Sources without tokens are shared with none.

    Args:
        store: IdStore.
        other: IdStore with ids of the same tokenizer.
    """
    hashes = np.concatenate(list(_hashes(store, (SOURCE,))))
    shared = np.zeros(len(hashes), dtype=bool)
    for of_other in _hashes(other, (SOURCE,)):
        shared |= np.isin(hashes, of_other)
    full = [lengths[:, SOURCE] > 1 for _, lengths in store.chunks()]
    shared &= np.concatenate(full)
    return store.line_numbers(np.flatnonzero(shared)).tolist()


def _hashes(store: IdStore, sides: Sequence[int]) -> Iterator[np.ndarray]:
    """Yields a uint64 hash of the given sides of each pair, in chunks of pairs."""
    factors = {side: _factors(side, store.longest) for side in sides}
    for first, lengths in store.chunks():
        ids = store.read(np.arange(first, first + len(lengths)))
        yield sum(_sums(ids[side], lengths[:, side], factors[side]) for side in sides)


def _factors(side, count):
    """A random odd number for each position, the same for any count."""
    random = np.random.default_rng([side, 64])
    return random.integers(1 << 64, size=count, dtype=np.uint64) | np.uint64(1)


def _sums(ids, lengths, factors):
    """The hash of each sequence; the sequences follow each other in `ids`."""
    stops = np.cumsum(lengths)
    positions = np.arange(len(ids)) - np.repeat(stops - lengths, lengths)
    terms = (ids.astype(np.uint64) + np.uint64(1)) * factors[positions]
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])  # modulo 2^64
    return totals[stops] - totals[stops - lengths]
