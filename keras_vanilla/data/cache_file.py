"""The memory-mapped file of a token cache: arrays and a description.

The parts follow each other, little-endian and without a header:

    ids            uint16, or int32 for more than 65,536 pieces; then zeros up to a
                   multiple of 8 bytes
    offsets        int64 (2 * pairs + 1,), as in `IdStore`
    line_numbers   int64 (pairs,), from 1 over all text files
    description    JSON in UTF-8
    size           int64, number of bytes of the description
    checksum       32 bytes, SHA-256 of all bytes before it

A file is written under a temporary name, renamed when it is complete, and never changed
afterwards, so it cannot change while it is read.
"""

import hashlib
import json
import mmap
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from keras_vanilla._atomic_write import atomic_path
from keras_vanilla.data.id_store import IdStore

VERSION = 3
CHECKSUM_BYTES = 32


def write_cache_file(
    path: Path,
    description: dict,
    chunks: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> None:
    """Writes pairs in chunks, so that memory does not grow with their number.

    Args:
        path: path of the file. An existing file is replaced when this one is complete.
        description: dict for JSON. It is read last, so `chunks` may change it.
        chunks: iterator over ids, the length of each sequence, and the line numbers of
            some pairs; at least one chunk.
    """
    count = pairs = longest = 0
    with (
        atomic_path(path) as temporary,
        open(temporary, "x+b") as file,
        TemporaryFile(dir=path.parent) as offsets,
        TemporaryFile(dir=path.parent) as line_numbers,
    ):
        offsets.write(bytes(8))
        for ids, lengths, numbers in chunks:
            file.write(ids.tobytes())
            offsets.write((count + np.cumsum(lengths)).astype("<i8").tobytes())
            line_numbers.write(numbers.astype("<i8").tobytes())
            count, pairs = count + len(ids), pairs + len(numbers)
            longest = max(longest, int(lengths.max(initial=0)))
        file.write(bytes(-file.tell() % 8))
        for array in (offsets, line_numbers):
            array.seek(0)
            shutil.copyfileobj(array, file)
        shape = {"dtype": ids.dtype.str, "ids": count, "pairs": pairs}
        metadata = {"version": VERSION, **shape, "longest": longest, **description}
        content = json.dumps(metadata).encode()
        file.write(content + len(content).to_bytes(8, "little"))
        file.seek(0)
        checksum = hashlib.file_digest(file, "sha256").digest()
        file.write(checksum)


def read_cache_file(path: Path) -> tuple[dict, IdStore]:
    """Reads the description of a cache file, and memory-maps its ids.

    The operating system reads pages of the file when they are needed, and frees them
    when memory is short.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it was not written by `write_cache_file`, or is damaged.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size <= CHECKSUM_BYTES:
            raise _damaged(path)
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    body = memoryview(content)[:-CHECKSUM_BYTES]
    if hashlib.sha256(body).digest() != content[-CHECKSUM_BYTES:]:
        raise _damaged(path)
    size = int.from_bytes(body[-8:], "little")
    description = json.loads(bytes(body[-8 - size : -8]))
    if description["version"] != VERSION:
        raise ValueError(
            f"{path} must be a token cache of version {VERSION}. Received: version "
            f"{description['version']}"
        )
    count, pairs = description["ids"], description["pairs"]
    ids = np.frombuffer(body, description["dtype"], count)
    after_ids = -(-ids.nbytes // 8) * 8
    integers = np.frombuffer(body, "<i8", 3 * pairs + 1, after_ids)
    offsets, line_numbers = np.split(integers, [2 * pairs + 1])
    longest, most = description["longest"], description["max_tokens"]
    return description, IdStore(ids, offsets, line_numbers, longest, most)


def _damaged(path):
    return ValueError(
        f"{path} is damaged or incomplete: its SHA-256 is another. TokenCache.make "
        "makes it again."
    )
