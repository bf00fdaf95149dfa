"""Parts of a corpus that share no sentence."""

import numpy as np


def shared_sentences(*sides) -> list[int]:
    """For each pair the first of all pairs it shares sentences with, however far.

    Union-find: two pairs are joined when a side of theirs is equal.
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


def filled(sizes, counts, order):
    """The part of each group: 0 for the rest, k for sizes[k - 1], filled exactly.

    Args:
        sizes: ints, pairs of each part.
        counts: ints, pairs of each group.
        order: ints, the groups in the order they are tried in.
    Raises:
        ValueError: if no groups fill a part.
    """
    part = np.zeros(len(counts), dtype=np.int64)
    for number, size in enumerate(sizes, start=1):
        room = size
        for group in order:
            if room and not part[group] and counts[group] <= room:
                part[group] = number
                room -= counts[group]
        if room:
            raise ValueError(
                f"`split` cannot make a part of {size} pairs: only {size - room} fit "
                "while pairs that share a sentence stay together."
            )
    return part
