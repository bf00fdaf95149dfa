"""A corpus split into several that share no sentence."""

from collections.abc import Sequence

import numpy as np


def shared_sentences(*sides: Sequence[str]) -> list[int]:
    """Groups pairs that share a source or a target sentence, by union-find.

    Args:
        *sides: sequences of str, the sources and the targets.
    Returns:
        For each pair the number of the first pair in its group.
    """
    first = list(range(len(sides[0])))

    def root(pair):
        while first[pair] != pair:
            first[pair] = pair = first[first[pair]]
        return pair

    for side in sides:
        seen = {}
        for pair, sentence in enumerate(side):
            one, other = root(seen.setdefault(sentence, pair)), root(pair)
            first[max(one, other)] = min(one, other)
    return [root(pair) for pair in range(len(first))]


def fill_splits(
    sizes: Sequence[int], counts: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Assigns groups of pairs to splits of exact sizes.

    Args:
        sizes: ints, number of pairs in each split.
        counts: ints, number of pairs in each group.
        order: ints, the groups in the order in which they are tried.
    Returns:
        For each group k if it is in the split of sizes[k - 1], 0 if it is in none.
    Raises:
        ValueError: if the groups cannot fill a split exactly.
    """
    split = np.zeros(len(counts), dtype=np.int64)
    for number, size in enumerate(sizes, start=1):
        room = size
        for group in order:
            if room and not split[group] and counts[group] <= room:
                split[group] = number
                room -= counts[group]
        if room:
            raise ValueError(
                f"`split` cannot fill a corpus of {size} pairs: only {size - room} fit "
                "while pairs that share a sentence stay together."
            )
    return split
