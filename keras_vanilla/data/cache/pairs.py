"""The pairs of a token cache, each read from the disk by its number."""

import functools
import itertools
import os

import numpy as np

from keras_vanilla.data.cache.parts import ROW
from keras_vanilla.data.cache.records import unpacked
from keras_vanilla.data.cache.tfrecord import FOOTER, HEADER, damaged

ROWS_AT_ONCE = 1 << 15
OPEN_FILES = 64
PLACE = "part", "size", "offset"


class CachedPairs:
    """The ids of every pair of a cache; nothing of them stays in memory.

    Files are read at an offset, not mapped: the pages of a mapped file count as this
    process's memory.

    Args:
        index: path of the index, a `ROW` for every pair.
        parts: paths of the TFRecord files.
        longest: int. Length of the longest sequence.
        max_tokens: int. Longer pairs were left out.
    """

    def __init__(self, index, parts, longest, max_tokens):
        self._index = open(index, "rb", buffering=0)
        self._parts, self.longest, self.max_tokens = parts, longest, max_tokens
        self._size = os.path.getsize(index) // ROW.itemsize
        self._file = functools.lru_cache(maxsize=OPEN_FILES)(self._open)

    def __len__(self):
        return self._size

    def chunks(self):
        """Walks over all: (number of the first pair, lengths (n, 2) of n pairs)."""
        for first in range(0, len(self), ROWS_AT_ONCE):
            size = ROW.itemsize
            rows = os.pread(self._index.fileno(), ROWS_AT_ONCE * size, first * size)
            yield first, np.frombuffer(rows, dtype=ROW)["lengths"]

    def lengths(self, pairs):
        """Lengths of source and target of some pairs, (n, 2)."""
        return self._rows(pairs)["lengths"].astype(np.int64)

    def line_numbers(self, pairs):
        """Where in the corpus some pairs stand."""
        return self._rows(pairs)["line"]

    def read(self, pairs):
        """Source ids and target ids of some pairs, each one after the other, flat.

        Raises:
            ValueError: if a file is not as it was written.
        """
        rows = self._rows(pairs)
        if not len(rows):
            return np.zeros((2, 0), dtype=np.int32)
        self._refuse(rows, rows["part"] >= len(self._parts))
        records = self._records(rows)
        self._refuse(rows, damaged(records))
        lines, *sides = zip(
            *unpacked(record[HEADER:-FOOTER] for record in records), strict=True
        )
        lengths = np.array([[len(ids) for ids in side] for side in sides]).T
        other = (lengths != rows["lengths"]).any(axis=1) | (rows["line"] != lines)
        self._refuse(rows, other)
        flat = [itertools.chain.from_iterable(side) for side in sides]
        return [np.fromiter(ids, dtype=np.int32) for ids in flat]

    def _rows(self, pairs):
        size, index = ROW.itemsize, self._index.fileno()
        rows = [os.pread(index, size, pair * size) for pair in pairs.tolist()]
        return np.frombuffer(b"".join(rows), dtype=ROW)

    def _records(self, rows):
        places = zip(*(rows[name].tolist() for name in PLACE), strict=True)
        records = []
        for part, size, offset in places:
            file = self._file(part)  # held, so that no other thread's use closes it
            records.append(os.pread(file.fileno(), size, offset))
        return records

    def _open(self, part):
        return open(self._parts[part], "rb", buffering=0)

    def _refuse(self, rows, which):
        for row in rows[which]:
            known = row["part"] < len(self._parts)
            file = self._parts[row["part"]] if known else self._index.name
            raise ValueError(
                f"{file} is damaged: the record of line {row['line']}, at byte "
                f"{row['offset']}, is not as it was written. Delete it, and make the "
                "cache again."
            )
