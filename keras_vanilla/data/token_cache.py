"""Corpora of any size, as ids in a memory-mapped file.

The parts of the file follow each other, little-endian and without a header:

    offsets        int64 (2 * lines + 1,), as in `IdStore`; the rest is unused
    line_numbers   int64 (lines,), of each pair, from 1 over all text files
    ids            uint16, or int32 for more than 65,536 pieces
    description    JSON in UTF-8
    size           int64, number of bytes of the description
    checksum       32 bytes, SHA-256 of all bytes before it

A file is written under a temporary name, renamed when it is complete, and never changed
afterwards, so it cannot change while it is read.
"""

import hashlib
import itertools
import json
import os
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
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
VERSION = 4
CHECKSUM_BYTES = 32


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
        path = self.folder / NAME
        try:
            content = np.asarray(np.memmap(path, np.uint8, "r"))
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{folder} has no complete token cache: make one with TokenCache.make."
            ) from None
        except ValueError:  # an empty file
            content = np.empty(0, np.uint8)
        body, checksum = np.split(content, [-CHECKSUM_BYTES])
        if hashlib.sha256(body).digest() != checksum.tobytes():
            raise ValueError(
                f"{path} is damaged or incomplete: its SHA-256 is another. "
                "TokenCache.make makes it again."
            )
        body, size = np.split(body, [-8])
        body, description = np.split(body, [-int(size.view("<i8")[0])])
        description = json.loads(description.tobytes())
        if description["version"] != VERSION:
            raise ValueError(
                f"{path} must be a token cache of version {VERSION}. Received: version "
                f"{description['version']}"
            )
        self.report, self._files = description["report"], description["files"]
        self._tokenizer, self.max_tokens, _ = self._made_of = description["made_of"]
        lines, pairs = self._lines, description["pairs"]
        index, ids = np.split(body, [8 * (3 * lines + 1)])
        offsets, line_numbers = np.split(index.view("<i8"), [2 * lines + 1])
        self._store = IdStore(
            ids.view(description["dtype"]),
            offsets[: 2 * pairs + 1],
            line_numbers[:pairs],
            description["longest"],
            self.max_tokens,
        )

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
        cache = None
        try:
            cache, reason = cls(folder), None
        except FileNotFoundError:
            reason = "there is none"
        except ValueError:
            reason = "it is damaged or of another version"
        files = _text_files(paths, cache._files if cache else [])
        for pair, source, target in zip(paths, files[::2], files[1::2], strict=True):
            check_line_counts(*pair, source["lines"], target["lines"])
            same = bool(source["lines"]) and source["sha256"] == target["sha256"]
            refuse_copies(*pair, same)
        checksums = [file["sha256"] for file in files]
        made_of = [tokenizer.digest, max_tokens, checksums]
        if cache:
            names = "the tokenizer", "`max_tokens`", "the text"
            parts = zip(names, cache._made_of, made_of, strict=True)
            changed = [name for name, before, now in parts if before != now]
            reason = f"{changed[0]} has changed" if changed else None
        if reason:
            if progress and (folder / NAME).exists():
                print(f"{folder} is made again: {reason}.", file=progress)
            with folder_lock(folder):
                _make(folder, paths, tokenizer, made_of, files, progress)
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
        return hashlib.sha256(json.dumps(self._made_of).encode()).hexdigest()

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
        line = check_integer("line", line, 1, self._lines)
        for paths, file in zip(self._paths, self._files[::2], strict=True):
            if line <= file["lines"]:
                return f"{' and '.join(paths)}, line {line}"
            line -= file["lines"]

    def __len__(self) -> int:
        return len(self._store)

    @property
    def _lines(self):
        return sum(file["lines"] for file in self._files[::2])

    @property
    def _paths(self):
        paths = [file["path"] for file in self._files]
        return list(zip(paths[::2], paths[1::2], strict=True))

    def _warn(self):
        for reason, lines in self.report.items():
            first = "; ".join(self.place(line) for line in lines[:3])
            warnings.warn(
                f"{len(lines)} of {self._lines} pairs are left out, {reason}: "
                f"{first}{'; ...' if len(lines) > 3 else ''}.",
                stacklevel=3,
            )


def _make(folder, paths, tokenizer, made_of, files, stream):
    """Writes the file of a cache; the caller must hold the folder's lock.

    Memory does not grow with the number of pairs.
    """
    remove_unfinished(folder, re.compile(re.escape(NAME)))
    lines, max_tokens = sum(file["lines"] for file in files[::2]), made_of[1]
    show = Progress("Tokenising", lines, "lines", stream) if stream else nullcontext()
    report = {"empty": [], "too long": []}
    count = pairs = longest = 0
    with (
        show as progress,
        atomic_path(folder / NAME) as temporary,
        open(temporary, "x+b") as cache,
    ):
        for chunk in _numbered_lines(paths, lines):
            ids, lengths, numbers = _encoded(chunk, tokenizer, max_tokens, report)
            for start, values in (
                (8 * (2 * pairs + 1), count + np.cumsum(lengths)),
                (8 * (2 * lines + 1 + pairs), numbers),
                (8 * (3 * lines + 1) + count * ids.itemsize, ids),
            ):
                cache.seek(start)
                cache.write(values.tobytes())
            count, pairs = count + len(ids), pairs + len(numbers)
            longest = max(longest, int(lengths.max(initial=0)))
            if progress:
                progress.update(len(chunk))
        for before, now in zip(files, _text_files(paths, files), strict=True):
            if before != now:
                raise ValueError(f"{now['path']} has changed while it was read.")
        if not pairs:
            raise ValueError(
                f"{names_of(paths)}: none of {lines} pairs has text on both sides and "
                f"at most {max_tokens} tokens."
            )
        description = {
            "version": VERSION,
            "dtype": ids.dtype.str,
            "pairs": pairs,
            "longest": longest,
            "made_of": made_of,
            "files": files,
            "report": {reason: lines for reason, lines in report.items() if lines},
        }
        content = json.dumps(description).encode()
        cache.seek(0, os.SEEK_END)
        cache.write(content + len(content).to_bytes(8, "little"))
        cache.seek(0)
        cache.write(hashlib.file_digest(cache, "sha256").digest())


def _numbered_lines(paths, most):
    """Yields line number, source and target of all pairs, in chunks."""
    # Files that have changed since their lines were counted are refused in the end.
    pairs = (pair for both in paths for pair in zip(*map(lines_of, both), strict=False))
    numbered = ((n, s.decode(), t.decode()) for n, (s, t) in enumerate(pairs, start=1))
    numbered = itertools.islice(numbered, most)
    while chunk := list(itertools.islice(numbered, LINES_AT_ONCE)):
        yield chunk


def _encoded(lines, tokenizer, max_tokens, report):
    """Ids, the length of each sequence, and line numbers of the kept pairs."""
    full = [bool(source.strip() and target.strip()) for _, source, target in lines]
    numbers, *texts = _kept(full, report["empty"], *zip(*lines, strict=True))
    rows = tokenizer.encode(texts[0]), tokenizer.encode_target(texts[1])
    short = [max(map(len, pair)) <= max_tokens for pair in zip(*rows, strict=True)]
    numbers, *rows = _kept(short, report["too long"], numbers, *rows)
    return *flat_ids(*rows, tokenizer), np.array(numbers, dtype="<i8")


def _kept(keep, left_out, numbers, *sides):
    """Line numbers and sides of kept pairs; adds the others to `left_out`."""
    left_out += itertools.compress(numbers, [not each for each in keep])
    return [list(itertools.compress(column, keep)) for column in (numbers, *sides)]


def _text_files(paths, known):
    """Path, size, modification time, SHA-256 and line count of each text file.

    A file with the path, size and time of one of the `known` files counts as unchanged
    and is not read.
    """
    known = {(file["path"], file["size"], file["mtime_ns"]): file for file in known}

    def described(path):
        refuse_pipe(path)
        status, absolute = os.stat(path), os.path.abspath(path)
        stamp = absolute, status.st_size, status.st_mtime_ns
        if stamp in known:
            return known[stamp]
        with open(path, "rb") as text:
            digest = hashlib.file_digest(text, "sha256").hexdigest()
        values = *stamp, digest, count_lines(path)
        return dict(
            zip(("path", "size", "mtime_ns", "sha256", "lines"), values, strict=True)
        )

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(described, itertools.chain.from_iterable(paths)))
