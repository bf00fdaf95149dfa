"""Corpora of any size, as ids in a memory-mapped file.

The parts of the file follow each other, little-endian and without a header:

    offsets      int64 (2 * lines + 1,), as in `IdStore`
    ids          uint16, or int32 for more than 65,536 pieces
    description  JSON in UTF-8
    size         int64, number of bytes of the description
    checksum     32 bytes, SHA-256 of all bytes before it

A file is written under a temporary name, renamed when it is complete, and never changed
afterwards, so it cannot change while it is read.
"""

import hashlib
import itertools
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TextIO

import numpy as np

from keras_vanilla._atomic_write import atomic_path, remove_unfinished
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._progress import Progress
from keras_vanilla.data.id_store import IdStore, flat_ids, id_dtype
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
FACTS = ("path", "size", "mtime_ns", "sha256", "lines")  # of a text file
LINES_AT_ONCE = 4_096
VERSION = 5
CHECKSUM_BYTES = 32


class TokenCache:
    """A corpus of any size, tokenised once and stored as ids in a folder.

    `batches` accepts it in place of a `ParallelCorpus`, with the tokenizer it was made
    with, and creates the same batches as for a `ParallelCorpus` of the same lines. The
    order of each epoch is drawn over all pairs, because pairs can be read by number.
    As for a `ParallelCorpus`, `len` does not count lines that are blank on either side.

    The folder has one file, `token_cache.ids`, which is memory-mapped. It is read once
    on opening, to check its checksum. Line numbers count from 1 over all text files.

    Args:
        folder: path of a cache that `TokenCache.make` has created.
    Attributes:
        origin: str. Name of this text in errors.
        digest: str. SHA-256 of everything that determines the ids: text and tokenizer.
        report: empty dict. Pairs are left out by `batches`.
    Raises:
        FileNotFoundError: if there is no complete cache in the folder.
        ValueError: if it is damaged or has another version.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder, self.report = Path(folder), {}
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
        self._files, self._made_of = description["files"], description["made_of"]
        offsets, ids = np.split(body, [8 * (2 * _lines(self._files) + 1)])
        offsets, ids = offsets.view("<i8"), ids.view(description["dtype"])
        self._store = IdStore(ids, offsets, description["longest"])
        self._pairs = description["pairs"]

    @classmethod
    def make(
        cls,
        source: Paths,
        target: Paths,
        tokenizer: TokenizerProtocol,
        folder: str | os.PathLike,
        progress: TextIO | None = None,
    ) -> "TokenCache":
        """Tokenises text files into a folder, unless this was done before.

        A cache is reused if text and tokenizer are the same: a text file with the same
        path, size and modification time counts as unchanged, other files are read and
        compared. Otherwise, or if the cache is damaged, it is created again. If this is
        interrupted, the previous cache, or none, remains. Other files are never
        deleted, and a file that is in use for training is never changed.

        If several processes train together, create the cache in one of them first.

        Args:
            source: path of UTF-8 text, one sentence per line, decompressed if it ends
                in ".gz", ".xz" or ".zst". Or a list of paths.
            target: path of its translation, line by line; or a list of paths of the
                same length.
            tokenizer: TokenizerProtocol.
            folder: path of a folder, which is created if it does not exist.
            progress: text file, such as `sys.stderr`, on which progress is shown; None
                shows nothing.
        Returns:
            TokenCache.
        Raises:
            TypeError: if `tokenizer` is not a tokenizer.
            FileNotFoundError, IsADirectoryError: if a path is not a file.
            FolderInUse: if another process creates a cache in the folder.
            PermissionError: on Windows, if a training has another cache of this folder
                open.
            ValueError: if there are no files, a path is a pipe, the numbers of files or
                lines differ, source and target are the same text, a line is not UTF-8,
                a compressed file is damaged, or a file changes while it is read.
            ImportError: if a path ends in ".zst" and Python cannot read this format.
        """
        check_tokenizer(tokenizer, BATCH_ATTRIBUTES)
        folder, paths = Path(folder), paired_paths(source, target)
        try:
            cache = cls(folder)
        except (FileNotFoundError, ValueError):
            cache = None
        files = _text_files(paths, cache._files if cache else [])
        for pair, source, target in zip(paths, files[::2], files[1::2], strict=True):
            check_line_counts(*pair, source["lines"], target["lines"])
            same = bool(source["lines"]) and source["sha256"] == target["sha256"]
            refuse_copies(*pair, same)
        made_of = [tokenizer.digest, [file["sha256"] for file in files]]
        if cache is None or cache._made_of != made_of:
            if progress and (folder / NAME).exists():
                print(
                    f"{folder} is made again: the text or the tokenizer has changed, "
                    "or it is damaged or of another version.",
                    file=progress,
                )
            cache = None  # Windows replaces no file that is mapped into memory
            with folder_lock(folder):
                _make(folder, paths, tokenizer, made_of, files, progress)
                cache = cls(folder)
        cache._files = files  # the same text may now have other paths
        return cache

    @property
    def origin(self) -> str:
        """The name of this text in errors."""
        paths = [file["path"] for file in self._files]
        return names_of(zip(paths[::2], paths[1::2], strict=True))

    @property
    def digest(self) -> str:
        """SHA-256 of text and tokenizer."""
        return hashlib.sha256(json.dumps(self._made_of).encode()).hexdigest()

    def id_store(self, tokenizer: TokenizerProtocol) -> IdStore:
        """The ids of every pair, for `batches`; they are read from the file.

        Args:
            tokenizer: TokenizerProtocol that the cache was made with.
        Raises:
            ValueError: if the cache was made with another tokenizer.
        """
        if tokenizer.digest != self._made_of[0]:
            raise ValueError(
                f"{self.folder} was made with another tokenizer than the one received: "
                "make it again with this one."
            )
        return self._store

    def __len__(self) -> int:
        return self._pairs


def _make(folder, paths, tokenizer, made_of, files, stream):
    """Writes the file of a cache; the caller must hold the folder's lock.

    Memory does not grow with the number of pairs.
    """
    remove_unfinished(folder, re.compile(re.escape(NAME)))
    lines, dtype = _lines(files), id_dtype(tokenizer)
    show = Progress("Tokenising", lines, "lines", stream) if stream else nullcontext()
    count = lines_before = pairs = longest = 0
    with (
        show as progress,
        atomic_path(folder / NAME) as temporary,
        open(temporary, "x+b") as cache,
    ):
        cache.write(bytes(8))
        for texts in _chunks(paths, lines):
            sides = list(zip(*texts, strict=True))
            rows = tokenizer.encode(sides[0]), tokenizer.encode_target(sides[1])
            ids, lengths = flat_ids(*rows, tokenizer)
            cache.seek(8 * (2 * lines_before + 1))
            cache.write((count + np.cumsum(lengths)).astype("<i8").tobytes())
            cache.seek(8 * (2 * lines + 1) + count * dtype.itemsize)
            cache.write(ids.tobytes())
            count, lines_before = count + len(ids), lines_before + len(texts)
            pairs += sum(map(all, texts))
            longest = max(longest, int(lengths.max()))
            if progress:
                progress.update(len(texts))
        for before, now in zip(files, _text_files(paths, files), strict=True):
            if before != now:
                raise ValueError(f"{now['path']} has changed while it was read.")
        description = {
            "version": VERSION,
            "dtype": dtype.str,
            "longest": longest,
            "pairs": pairs,
            "made_of": made_of,
            "files": files,
        }
        content = json.dumps(description).encode()
        cache.seek(0, os.SEEK_END)
        cache.write(content + len(content).to_bytes(8, "little"))
        cache.seek(0)
        cache.write(hashlib.file_digest(cache, "sha256").digest())


def _chunks(paths, most):
    """Yields the pairs of all files in chunks; pairs with a blank side are empty."""
    # Files that have changed since their lines were counted are refused in the end.
    pairs = (pair for both in paths for pair in zip(*map(lines_of, both), strict=False))
    texts = ((s.decode(), t.decode()) for s, t in itertools.islice(pairs, most))
    pairs = (pair if all(map(str.strip, pair)) else ("", "") for pair in texts)
    while chunk := list(itertools.islice(pairs, LINES_AT_ONCE)):
        yield chunk


def _lines(files):
    return sum(file["lines"] for file in files[::2])


def _text_files(paths, known):
    """Path, size, modification time, SHA-256 and line count of each text file.

    A file with the path, size and time of one of the `known` files counts as unchanged
    and is not read.
    """
    known = {tuple(file[name] for name in FACTS[:3]): file for file in known}

    def described(path):
        refuse_pipe(path)
        status, absolute = os.stat(path), os.path.abspath(path)
        stamp = absolute, status.st_size, status.st_mtime_ns
        if stamp in known:
            return known[stamp]
        with open(path, "rb") as text:
            digest = hashlib.file_digest(text, "sha256").hexdigest()
        values = *stamp, digest, count_lines(path)
        return dict(zip(FACTS, values, strict=True))

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(described, itertools.chain.from_iterable(paths)))
