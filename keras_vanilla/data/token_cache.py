"""Corpora of any size, as ids in a memory-mapped file.

The parts of the file follow each other, little-endian and without a header:

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

import contextlib
import hashlib
import itertools
import json
import mmap
import os
import re
import shutil
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryFile
from typing import TextIO

import numpy as np

from keras_vanilla._atomic_write import atomic_path, remove_unfinished
from keras_vanilla._checks import check_integer
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._progress import Progress
from keras_vanilla.data.id_store import IdStore, flat_ids
from keras_vanilla.data.lines import (
    Paths,
    check_line_counts,
    count_lines,
    lines_of,
    names_of,
    paired_paths,
    refuse_copies,
    refuse_pipe,
)
from keras_vanilla.tokenizer import TokenizerProtocol
from keras_vanilla.tokenizer.protocol import BATCH_ATTRIBUTES, check_tokenizer

NAME = "token_cache.ids"
LINES_AT_ONCE = 4_096
VERSION = 3
CHECKSUM_BYTES = 32
STAMP = "path", "size", "mtime_ns"


class TokenCache:
    """A corpus of any size, tokenised once and stored as ids in a folder.

    `batches` accepts it in place of a `ParallelCorpus`, with the tokenizer it was made
    with, and creates the same batches as for a `ParallelCorpus` of the same lines. The
    order of each epoch is drawn over all pairs, because pairs can be read by number.

    The folder has one file, `token_cache.ids`, which is memory-mapped. It is read once
    on opening, to check its checksum. Line numbers count from 1 over all text files.

    Args:
        folder: path of a cache that `TokenCache.make` has created.
    Attributes:
        report: dict of reason -> line numbers of the pairs left out.
        origin: str. Name of this text in errors.
        digest: str. SHA-256 of everything that determines the ids: text, tokenizer and
            `max_tokens`.
        max_tokens: int. Longer pairs were left out.
    Raises:
        FileNotFoundError: if there is no complete cache in the folder.
        ValueError: if it is damaged or has another version.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        try:
            description, self._store = _read_file(self.folder / NAME)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{folder} has no complete token cache: make one with TokenCache.make."
            ) from None
        self.max_tokens = description["max_tokens"]
        self._tokenizer = description["tokenizer"]
        self._files = description["files"]
        self.report = {k: lines for k, lines in description["report"].items() if lines}

    @classmethod
    def open(cls, folder: str | os.PathLike) -> "TokenCache":
        """Opens the cache in a folder; see `TokenCache`."""
        return cls(folder)

    @classmethod
    def make(
        cls,
        source: Paths,
        target: Paths,
        tokenizer: TokenizerProtocol,
        folder: str | os.PathLike,
        max_tokens: int = 256,
        progress: TextIO | None = None,
    ) -> "TokenCache":
        """Tokenises text files into a folder, unless this was done before.

        A cache is reused if text, tokenizer and `max_tokens` are the same: a text file
        with the same path, size and modification time counts as unchanged, other files
        are read and compared. Otherwise, or if the cache is damaged, it is created
        again. If this is interrupted, the previous cache, or none, remains. Other files
        are never deleted, and a file that is in use for training is never changed.

        If several processes train together, create the cache in one of them first.

        Pairs without text on either side, or longer than `max_tokens`, are left out
        with a warning, and reported.

        Args:
            source: path of UTF-8 text, one sentence per line, decompressed if it ends
                in ".gz", ".xz" or ".zst". Or a list of paths.
            target: path of its translation, line by line; or a list of paths of the
                same length.
            tokenizer: TokenizerProtocol.
            folder: path of a folder, which is created if it does not exist.
            max_tokens: int. Longest sequence, including its end, on either side.
            progress: text file, such as `sys.stderr`, on which progress is shown; None
                shows nothing.
        Returns:
            TokenCache.
        Raises:
            TypeError: if `tokenizer` is not a tokenizer.
            FileNotFoundError, IsADirectoryError: if a path is not a file.
            FolderInUse: if another process creates a cache in the folder.
            ValueError: if a number is out of range, there are no files, a path is a
                pipe, the numbers of files or lines differ, source and target are the
                same text, a line is not UTF-8, a compressed file is damaged, a file
                changes while it is read, or no pairs remain.
            ImportError: if a path ends in ".zst" and Python cannot read this format.
        """
        check_tokenizer(tokenizer, BATCH_ATTRIBUTES)
        max_tokens, folder = check_integer("max_tokens", max_tokens, 2), Path(folder)
        paths = paired_paths(source, target)
        wanted = (folder, paths, tokenizer, max_tokens)
        cache, files, reason = _compared(*wanted)
        if reason:
            with folder_lock(folder):
                # another process may have created it meanwhile
                cache, files, reason = _compared(*wanted, known=files)
                if reason:
                    if progress and (folder / NAME).exists():
                        print(f"{folder} is made again: {reason}.", file=progress)
                    _make(*wanted, files, progress)
                    cache = cls(folder)
        cache._files = files  # the same text may now have other paths
        cache._warn()
        return cache

    @property
    def origin(self) -> str:
        """The name of this text in errors."""
        return names_of(self._paths)

    @property
    def digest(self) -> str:
        """SHA-256 of text, tokenizer and `max_tokens`."""
        checksums = [file["sha256"] for file in self._files]
        values = json.dumps([self._tokenizer, self.max_tokens, checksums])
        return hashlib.sha256(values.encode()).hexdigest()

    def id_store(self, tokenizer: TokenizerProtocol) -> IdStore:
        """The ids of every pair, for `batches`; they are read from the file.

        Args:
            tokenizer: TokenizerProtocol that the cache was made with.
        Raises:
            ValueError: if the cache was made with another tokenizer.
        """
        if tokenizer.digest != self._tokenizer:
            raise ValueError(
                f"{self.folder} was made with another tokenizer than the one received: "
                "make it again with this one."
            )
        return self._store

    def place(self, line: int) -> str:
        """The two text files that contain a line, and its number in them.

        Args:
            line: int. Line number over all files, from 1.
        Raises:
            ValueError: if the line does not exist.
        """
        ends = list(itertools.accumulate(file["lines"] for file in self._files[::2]))
        line = check_integer("line", line, 1, ends[-1])
        pair = bisect_left(ends, line)
        within = line - (ends[pair] - self._files[2 * pair]["lines"])
        return f"{' and '.join(self._paths[pair])}, line {within}"

    def __len__(self) -> int:
        return len(self._store)

    @property
    def _paths(self):
        paths = [file["path"] for file in self._files]
        return list(zip(paths[::2], paths[1::2], strict=True))

    def _warn(self):
        total = sum(file["lines"] for file in self._files[::2])
        for reason, lines in self.report.items():
            first = "; ".join(self.place(line) for line in lines[:3])
            warnings.warn(
                f"{len(lines)} of {total} pairs are left out, {reason}: "
                f"{first}{'; ...' if len(lines) > 3 else ''}.",
                stacklevel=3,
            )


def _compared(folder, paths, tokenizer, max_tokens, known=()):
    """The cache of a folder, the text files, and the reason to create it, if any."""
    cache = reason = None
    try:
        cache = TokenCache(folder)
    except FileNotFoundError:
        reason = "there is none"
    except ValueError:
        reason = "it is damaged or of another version"
    files = _text_files(
        [path for pair in paths for path in pair],
        [*known, *(cache._files if cache else [])],
    )
    for pair, source, target in zip(paths, files[::2], files[1::2], strict=True):
        check_line_counts(*pair, source["lines"], target["lines"])
        same = bool(source["lines"]) and source["sha256"] == target["sha256"]
        refuse_copies(*pair, same)
    if cache:
        checksums = [
            [file["sha256"] for file in each] for each in (cache._files, files)
        ]
        if cache.max_tokens != max_tokens:
            reason = "`max_tokens` has changed"
        elif cache._tokenizer != tokenizer.digest:
            reason = "the tokenizer has changed"
        elif checksums[0] != checksums[1]:
            reason = "the text has changed"
    return cache, files, reason


def _make(folder, paths, tokenizer, max_tokens, files, stream):
    """Writes the file of a cache; the caller must hold the folder's lock.

    Memory does not grow with the number of pairs.
    """
    remove_unfinished(folder, re.compile(re.escape(NAME)))
    total = sum(file["lines"] for file in files[::2])
    show = Progress("Tokenising", total, "lines", stream) if stream else None
    report = {"empty": [], "too long": []}
    count = pairs = longest = 0
    with (
        show or contextlib.nullcontext() as progress,
        atomic_path(folder / NAME) as temporary,
        open(temporary, "x+b") as cache,
        TemporaryFile(dir=folder) as offsets,
        TemporaryFile(dir=folder) as line_numbers,
    ):
        offsets.write(bytes(8))
        for lines in _numbered_lines(paths):
            ids, lengths, numbers = _encoded(lines, tokenizer, max_tokens, report)
            cache.write(ids.tobytes())
            offsets.write((count + np.cumsum(lengths)).astype("<i8").tobytes())
            line_numbers.write(numbers.astype("<i8").tobytes())
            count, pairs = count + len(ids), pairs + len(numbers)
            longest = max(longest, int(lengths.max(initial=0)))
            if progress:
                progress.update(len(lines))
        now = _text_files([file["path"] for file in files], files)
        changed = [a["path"] for a, b in zip(files, now, strict=True) if a != b]
        if changed:
            raise ValueError(f"{changed[0]} has changed while it was read.")
        if not pairs:
            raise ValueError(
                f"{names_of(paths)}: none of {total} pairs has text on both sides and "
                f"at most {max_tokens} tokens."
            )
        cache.write(bytes(-cache.tell() % 8))
        for array in (offsets, line_numbers):
            array.seek(0)
            shutil.copyfileobj(array, cache)
        description = {
            "version": VERSION,
            "dtype": ids.dtype.str,
            "ids": count,
            "pairs": pairs,
            "longest": longest,
            "tokenizer": tokenizer.digest,
            "max_tokens": max_tokens,
            "files": files,
            "report": report,
        }
        content = json.dumps(description).encode()
        cache.write(content + len(content).to_bytes(8, "little"))
        cache.seek(0)
        cache.write(hashlib.file_digest(cache, "sha256").digest())


def _numbered_lines(paths) -> Iterator[list[tuple[int, str, str]]]:
    """Line number, source and target of all pairs, in chunks."""
    # Files that have become shorter since they were counted are refused in the end.
    pairs = (pair for both in paths for pair in zip(*map(lines_of, both), strict=False))
    numbered = ((n, s.decode(), t.decode()) for n, (s, t) in enumerate(pairs, start=1))
    while chunk := list(itertools.islice(numbered, LINES_AT_ONCE)):
        yield chunk


def _encoded(lines, tokenizer, max_tokens, report):
    """Ids, the length of each sequence, and line numbers of the kept pairs."""
    numbers, sources, targets = zip(*lines, strict=True)
    full = [bool(s.strip() and t.strip()) for _, s, t in lines]
    numbers, *sides = _kept(full, report["empty"], numbers, sources, targets)
    ids = tokenizer.encode(sides[0]), tokenizer.encode_target(sides[1])
    short = [max(len(s), len(t)) <= max_tokens for s, t in zip(*ids, strict=True)]
    numbers, *ids = _kept(short, report["too long"], numbers, *ids)
    return *flat_ids(*ids, tokenizer), np.array(numbers, dtype=np.int64)


def _kept(keep, left_out, numbers, *sides):
    """Line numbers and sides of kept pairs; adds the others to `left_out`."""
    left_out += itertools.compress(numbers, [not each for each in keep])
    return [list(itertools.compress(column, keep)) for column in (numbers, *sides)]


def _text_files(paths, known):
    """Path, size, modification time, SHA-256 and line count of each text file.

    A file with the path, size and time of one of the `known` files counts as unchanged
    and is not read.
    """
    known = {tuple(file[key] for key in STAMP): file for file in known}

    def described(path):
        refuse_pipe(path)
        status = os.stat(path)
        stamp = os.path.abspath(path), status.st_size, status.st_mtime_ns
        if stamp in known:
            return known[stamp]
        with open(path, "rb") as text:
            digest = hashlib.file_digest(text, "sha256").hexdigest()
        file = dict(zip(STAMP, stamp, strict=True))
        return file | {"sha256": digest, "lines": count_lines(path)}

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(described, paths))


def _read_file(path: Path) -> tuple[dict, IdStore]:
    """Reads the description of a cache file, and memory-maps its ids.

    The operating system reads pages of the file when they are needed, and frees them
    when memory is short.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it was not written by `_make`, or is damaged.
    """
    with open(path, "rb") as file:
        content = b""  # which cannot be mapped
        if os.fstat(file.fileno()).st_size:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    body = memoryview(content)[:-CHECKSUM_BYTES]
    if not body or hashlib.sha256(body).digest() != content[-CHECKSUM_BYTES:]:
        raise ValueError(
            f"{path} is damaged or incomplete: its SHA-256 is another. TokenCache.make "
            "makes it again."
        )
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
