"""A shard of ids as one plain file, which is mapped into memory to be read.

The file holds arrays one after the other, little-endian and without a header; where
each one begins is in the manifest of the cache:

    source_offsets, target_offsets   int64 (pairs + 1,)
    line_numbers                     int64 (pairs,), from 1 in the shard's text
    empty, too_long                  int64, line numbers of the pairs left out
    source_ids, target_ids           uint16, or int32 for more than 65,536 pieces

Files are written under a new name and never changed, so nothing is cut off under a
reader. A reader keeps one open file per shard.
"""

import hashlib
import mmap
import os
from pathlib import Path

import numpy as np

from keras_vanilla.data.id_store import FlatIds, IdShard

ARRAYS = (
    "source_offsets",
    "target_offsets",
    "line_numbers",
    "empty",
    "too_long",
    "source_ids",
    "target_ids",
)
DTYPES = "<i8", "<u2", "<i4"


def write_shard(path: Path, shard: IdShard, left_out: dict[str, list[int]]) -> dict:
    """Writes a new file and syncs it to the disk.

    Args:
        path: path of a file that does not exist.
        shard: IdShard.
        left_out: line numbers of the pairs left out, by reason.
    Returns:
        Dict of its size in `bytes`, `sha256`, and `arrays`: dict of name -> (first
        byte, number of values, dtype).
    """
    arrays = {
        "source_offsets": shard.source.offsets,
        "target_offsets": shard.target.offsets,
        "line_numbers": shard.line_numbers,
        "empty": np.array(left_out["empty"], dtype=np.int64),
        "too_long": np.array(left_out["too long"], dtype=np.int64),
        "source_ids": shard.source.ids,
        "target_ids": shard.target.ids,
    }
    places, digest = {}, hashlib.sha256()
    with open(path, "xb") as file:
        for name, array in arrays.items():
            padding = b"\0" * (-file.tell() % array.itemsize)
            dtype = array.dtype.newbyteorder("<")
            content = padding + array.astype(dtype).tobytes()
            places[name] = [file.tell() + len(padding), len(array), dtype.str]
            digest.update(content)
            file.write(content)
        size = file.tell()
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": size, "sha256": digest.hexdigest(), "arrays": places}


class ShardFile:
    """A file that `write_shard` wrote, mapped into memory.

    Its pages are the system's cache of the file: they are read when needed and given up
    when memory is short.

    Args:
        path: path of the file.
        arrays: dict, where its arrays are, as `write_shard` returned it.
    Raises:
        ValueError: if one of them cannot be there.
    """

    def __init__(self, path: Path, arrays: dict):
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._arrays = arrays
        for name, (first_byte, count, dtype) in arrays.items():
            end = None
            if dtype in DTYPES and min(first_byte, count) >= 0:
                end = first_byte + count * np.dtype(dtype).itemsize
            if end is None or end > len(self._map):
                raise ValueError(
                    f"{path} cannot have {name!r} at {arrays[name]}: the manifest of "
                    "the token cache is damaged, delete it."
                )

    def shard(self, lines_before: int) -> IdShard:
        """The pairs of the file; see `IdShard` for `lines_before`."""
        return IdShard(
            FlatIds(self._array("source_ids"), self._array("source_offsets")),
            FlatIds(self._array("target_ids"), self._array("target_offsets")),
            self._array("line_numbers"),
            lines_before,
        )

    def left_out(self) -> dict[str, list[int]]:
        """Line numbers of the pairs left out, by reason."""
        names = {"empty": "empty", "too long": "too_long"}
        return {reason: self._array(name).tolist() for reason, name in names.items()}

    def _array(self, name):
        first_byte, count, dtype = self._arrays[name]
        if not count:
            return np.empty(0, dtype=dtype)
        return np.frombuffer(self._map, dtype, count, first_byte)


def sha256_of(path: Path) -> str:
    """SHA-256 of the bytes of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
