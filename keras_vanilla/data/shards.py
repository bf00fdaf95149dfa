"""Parallel text in many files: shard i of the source beside shard i of the target."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from keras_vanilla._checks import some_of
from keras_vanilla.data.lines import lines_of, opened

BLOCK = 1 << 20


@dataclass(frozen=True)
class Part:
    """Lines that stand together in one shard.

    Args:
        source: path.
        target: path of the translation, line by line.
        source_offset: int. Where its lines begin in the source's text, in bytes.
        target_offset: int. And in the target's.
        lines: int. How many.
        first: int. Number in the shard, from 1, of the first.
        lines_before: int. Lines of all shards before this one.
    """

    source: str
    target: str
    source_offset: int
    target_offset: int
    lines: int
    first: int
    lines_before: int

    def pairs(self) -> Iterator[tuple[int, bytes, bytes]]:
        """(Line number over all shards, source, target) of every line, as UTF-8."""
        sides = zip(
            lines_of(self.source, self.source_offset, self.first),
            lines_of(self.target, self.target_offset, self.first),
            strict=True,
        )
        numbered = enumerate(sides, start=self.lines_before + self.first)
        for number, (source, target) in islice(numbered, self.lines):
            yield number, source, target


def shard_paths(source, target) -> list[tuple[str, str]]:
    """The files of each shard.

    Args:
        source: path, or several.
        target: path, or as many.
    Raises:
        ValueError: if there are none, or not as many of both.
    """
    sources, targets = _paths(source), _paths(target)
    if not sources or len(sources) != len(targets):
        raise ValueError(
            "Every file of source text needs one of its translation. "
            f"Received: {len(sources)} source and {len(targets)} target files"
        )
    return list(zip(sources, targets, strict=True))


def names_of(shards) -> str:
    """What to call the text of these files in a message."""
    return " and ".join(some_of(side, 3) for side in zip(*shards, strict=True))


def digests(paths) -> list[str]:
    """SHA-256 of the bytes of each file."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        return list(threads.map(_digest, paths))


def parts(shards, lines_of_a_part: int) -> list[Part]:
    """Cuts shards into parts of at most so many lines, to be read at the same time.

    Raises:
        FileNotFoundError, IsADirectoryError: if a path is not a file.
        ValueError: if two files of a shard differ in their number of lines, or a gzip
            file is damaged.
    """
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        paths = [path for shard in shards for path in shard]
        cuts = list(threads.map(lambda path: _cuts(path, lines_of_a_part), paths))
    found, before = [], 0
    for (source, target), (total, starts), (other, target_starts) in zip(
        shards, cuts[::2], cuts[1::2], strict=True
    ):
        check_line_counts(source, target, total, other)
        for number, offsets in enumerate(zip(starts, target_starts, strict=True)):
            passed = number * lines_of_a_part
            lines = min(lines_of_a_part, total - passed)
            found.append(Part(source, target, *offsets, lines, passed + 1, before))
        before += total
    return found


def check_line_counts(source, target, source_lines: int, target_lines: int):
    """Refuses two files that cannot be each other's translation line by line."""
    if source_lines != target_lines:
        raise ValueError(
            f"{source} and {target}: {source_lines} source lines, {target_lines} "
            "target lines."
        )


def _paths(files):
    several = isinstance(files, Iterable) and not isinstance(files, (str, bytes))
    return [os.fspath(Path(file)) for file in (files if several else [files])]


def _digest(path):
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _cuts(path, lines_of_a_part):
    """The number of lines of a text, and the byte at which each part begins."""
    lines, size, starts, last = 0, 0, [0], b"\n"
    with opened(path) as stream:
        while block := stream.read(BLOCK):
            count = block.count(b"\n")
            due = lines_of_a_part * len(starts) - lines  # of the part to come
            if count >= due:
                ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
                starts += (size + ends[due - 1 :: lines_of_a_part] + 1).tolist()
            lines, size, last = lines + count, size + len(block), block[-1:]
    lines += last != b"\n"
    return lines, [start for start in starts if start < size]
