"""Groups rows of similar length, and pads them."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

ROWS = 128  # most rows per batch: enough for two cores, few enough for their caches
POSITIONS = 32_768  # most per batch, over all beams: a cache of about a gigabyte
WIDTH_STEP = 8  # widths are multiples of this, so that few shapes are compiled


def length_buckets(
    rows: Sequence[Sequence[int]] | Mapping[int, Sequence[int]], beam_size: int = 1
) -> Iterator[list[int]]:
    """Yields the row indices of each batch, shortest rows first.

    Args:
        rows: lists of ids, or a dict of them by row index.
        beam_size: int. Hypotheses kept per row.
    """
    indices = list(rows) if isinstance(rows, Mapping) else range(len(rows))
    indices = sorted(indices, key=lambda index: len(rows[index]))
    start = 0
    while start < len(indices):
        longest = len(rows[indices[start : start + ROWS][-1]])
        count = max(1, min(ROWS, POSITIONS // (longest * beam_size)))
        yield indices[start : start + count]
        start += count


def pad_rows(rows: Collection[Sequence[int]], width: int, pad_id: int) -> np.ndarray:
    """Pads rows of ids at the end to an int32 array (len(rows), width)."""
    ids = np.full((len(rows), width), pad_id, dtype="int32")
    for padded, row in zip(ids, rows, strict=True):
        padded[: len(row)] = row
    return ids


def bucket_width(rows: Collection[Sequence[int]]) -> int:
    """The length of the longest row, rounded up to a multiple of 8."""
    return -(-max(map(len, rows)) // WIDTH_STEP) * WIDTH_STEP


def power_of_two(number: int) -> int:
    """The smallest power of two that is at least the number."""
    return 1 << (number - 1).bit_length()
