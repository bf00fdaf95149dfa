"""Groups rows of similar length, and pads them."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import keras
import numpy as np

ROWS = 192  # most rows per batch: enough for two cores, few enough for their caches
POSITIONS = 16_384  # most per batch, over all beams: a cache of about half a gigabyte
WIDTH_STEP = 8  # where each shape is compiled, widths are multiples of this


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
    """The length of the longest row; on JAX, rounded up to a multiple of 8."""
    longest = max(map(len, rows))
    return -(-longest // WIDTH_STEP) * WIDTH_STEP if _compiles_each_shape() else longest


def bucket_rows(number: int) -> int:
    """The number itself; on JAX, rounded up to a power of two or to `ROWS`."""
    if not _compiles_each_shape():
        return number
    power = 1 << (number - 1).bit_length()
    return min(power, ROWS) if number <= ROWS else power


def _compiles_each_shape():
    return keras.backend.backend() == "jax"
