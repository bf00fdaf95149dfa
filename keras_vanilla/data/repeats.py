"""Sentences and pairs that occur more than once, found by hashes of their ids.

The hash of a sequence is the sum of its ids, each times a random number that belongs to
its position, modulo 2^64. Of a hundred million different pairs it takes two for the
same in one corpus of several thousand.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from keras_vanilla.data.id_store import IdStore

SOURCE, TARGET = 0, 1


def repeated_pairs(store: IdStore, pairs: np.ndarray) -> np.ndarray:
    """Those of some pairs that are equal to an earlier one of them.

    Args:
        store: IdStore.
        pairs: int array, numbers of pairs, rising.
    """
    hashes = np.concatenate(list(_hashes(store, (SOURCE, TARGET))))[pairs]
    _, first = np.unique(hashes, return_index=True)
    repeated = np.ones(len(pairs), dtype=bool)
    repeated[first] = False
    return pairs[repeated]


def shared_sources(store: IdStore, other: IdStore) -> list[int]:
    """Line numbers of the pairs whose source sentence is also in another corpus.

    Args:
        store: IdStore.
        other: IdStore of ids of the same tokenizer.
    """
    hashes = np.concatenate(list(_hashes(store, (SOURCE,))))
    shared = np.zeros(len(hashes), dtype=bool)
    for of_other in _hashes(other, (SOURCE,)):
        shared |= np.isin(hashes, of_other)
    return store.line_numbers(np.flatnonzero(shared)).tolist()


def _hashes(store: IdStore, sides: Sequence[int]) -> Iterator[np.ndarray]:
    """A hash of each pair's sides, uint64, in chunks of pairs."""
    factors = {side: _factors(side, store.longest) for side in sides}
    for first, lengths in store.chunks():
        ids = store.read(np.arange(first, first + len(lengths)))
        yield sum(_sums(ids[side], lengths[:, side], factors[side]) for side in sides)


def _factors(side, count):
    """A random odd number for each position; the same ones for any count."""
    random = np.random.default_rng([side, 64])
    return random.integers(1 << 64, size=count, dtype=np.uint64) | np.uint64(1)


def _sums(ids, lengths, factors):
    """The hash of each sequence; the sequences follow each other in `ids`."""
    stops = np.cumsum(lengths)
    positions = np.arange(len(ids)) - np.repeat(stops - lengths, lengths)
    terms = (ids.astype(np.uint64) + np.uint64(1)) * factors[positions]
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms)])  # modulo 2^64
    return totals[stops] - totals[stops - lengths]
