"""A corpus of any size as ids in files."""

import contextlib
import os
import warnings
from bisect import bisect_left
from itertools import accumulate
from pathlib import Path
from typing import TextIO

from keras_vanilla._checks import check_integer
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla.data import cache_manifest as manifests
from keras_vanilla.data.cache_making import make_cache
from keras_vanilla.data.id_file import ShardFile
from keras_vanilla.data.id_store import IdStore
from keras_vanilla.data.shards import (
    Paths,
    check_line_counts,
    names_of,
    paired_paths,
    refuse_copies,
)
from keras_vanilla.tokenizer import TokenizerProtocol
from keras_vanilla.tokenizer.protocol import BATCH_ATTRIBUTES, check_tokenizer


class TokenCache:
    """A corpus of any size, tokenised once and kept as ids in a folder.

    `batches` takes it instead of a `ParallelCorpus`, with the tokenizer that it was
    made with, and gives exactly the batches of a `ParallelCorpus` of the same lines.
    Each epoch's order is drawn over all pairs, since every pair is found by its number.

    The folder holds `token_cache.json`, a manifest with sizes and SHA-256 checksums,
    and one plain file per 500,000 lines of text, which is memory-mapped; `id_file` has
    its format. Line numbers count from 1 over all text files.

    Args:
        folder: path of a cache that `TokenCache.make` made.
    Attributes:
        report: dict of reason -> line numbers of the pairs left out.
        origin: str. What to call this text in an error.
        digest: str. SHA-256 of everything that decides the ids: text, tokenizer and
            `max_tokens`.
        max_tokens: int. Longer pairs were left out.
    Raises:
        FileNotFoundError: if there is no whole cache in the folder.
        ValueError: if it is damaged or of another version.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        manifest = manifests.read_manifest(self.folder)
        if manifest is None:
            raise FileNotFoundError(
                f"{folder} has no complete token cache: make one with TokenCache.make."
            )
        if damage := manifests.first_damage(
            self.folder, manifest["shards"], checksum=False
        ):
            raise ValueError(f"{damage}; TokenCache.make makes it again.")
        self._manifest, self.max_tokens = manifest, manifest["max_tokens"]
        paths = [file["path"] for file in manifest["files"]]
        self._paths = list(zip(paths[::2], paths[1::2], strict=True))
        self._lines = [file["lines"] for file in manifest["files"][::2]]
        self.origin = names_of(self._paths)
        self.digest = _digest_of_manifest(manifest)
        self._files = [
            ShardFile(self.folder / shard["file"], shard["arrays"])
            for shard in manifest["shards"]
        ]
        shard_lines = [shard["lines"] for shard in manifest["shards"]]
        self._lines_before = list(accumulate(shard_lines, initial=0))[:-1]
        self._checked = False
        self.report = self._read_report()

    @classmethod
    def open(cls, folder: str | os.PathLike) -> "TokenCache":
        """The cache in a folder, as it is; see `TokenCache`."""
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
        """Tokenises text files into a folder, unless that has been done.

        A cache is used again if text, tokenizer and `max_tokens` are the same: a text
        file with the same size and time of change is taken to be the same, any other
        is read and compared. Otherwise it is made again, except for the shards of text
        that has not changed. A making that was killed continues after its last whole
        shard. A damaged shard is made again. Files that are not the cache's own are
        never deleted, and files that a training reads are never changed.

        If several processes train together, make the cache in one of them first.

        Pairs without text on either side, or longer than `max_tokens`, are left out
        with a warning, and reported.

        Args:
            source: path of UTF-8 text, one sentence per line, decompressed if it ends
                in ".gz", ".xz" or ".zst". Or a list of paths.
            target: path of its translation, line by line; or a list of as many.
            tokenizer: TokenizerProtocol.
            folder: path of a folder, which is made if it does not exist.
            max_tokens: int. Longest sequence, including its end, on either side.
            progress: text file, such as `sys.stderr`, to show the progress on; None
                means it is not shown.
        Returns:
            TokenCache.
        Raises:
            TypeError: if `tokenizer` is not one.
            FileNotFoundError, IsADirectoryError: if a path is not a file.
            FolderInUse: if another process makes a cache in the folder.
            ValueError: if a number is out of its range, there is no file, a path is a
                pipe, there are not as many files of both, source and target are the
                same text, the line counts of two files differ, a line is not UTF-8, a
                compressed file is damaged, a file changes while it is read, the folder
                has a cache of another version, or no pair is left.
            ImportError: if a path ends in ".zst" and Python cannot read that.
        """
        check_tokenizer(tokenizer, BATCH_ATTRIBUTES)
        max_tokens, folder = check_integer("max_tokens", max_tokens, 2), Path(folder)
        paths = paired_paths(source, target)
        wanted = (paths, tokenizer, max_tokens)
        cache, (files, reason) = None, _up_to_date(folder, *wanted)
        if reason is None:
            digest = _digest(tokenizer.digest, max_tokens, files)
            _note_new_times(folder, digest, files)
            cache = cls(folder)
        if cache is None or cache.digest != digest:  # of what another made meanwhile
            with folder_lock(folder):
                # another process may have made it meanwhile
                files, reason = _up_to_date(folder, *wanted, known=files)
                if reason:
                    before = manifests.read_manifest(folder)
                    if before and progress:
                        print(f"{folder} is made again: {reason}.", file=progress)
                    make_cache(
                        folder, paths, files, tokenizer, max_tokens, before, progress
                    )
                cache = cls(folder)
        cache._checked = True
        cache._warn()
        return cache

    def id_store(self, tokenizer: TokenizerProtocol) -> IdStore:
        """The ids of every pair, for `batches`; they stay in the files.

        The first call reads all files once to compare their checksums.

        Args:
            tokenizer: TokenizerProtocol that the cache was made with.
        Raises:
            ValueError: if the tokenizer is another one, or a file is damaged.
        """
        if tokenizer.digest != self._manifest["tokenizer"]:
            raise ValueError(
                f"{self.folder} was made with another tokenizer than the one received: "
                "make it again with this one."
            )
        shards = self._manifest["shards"]
        if not self._checked:
            if damage := manifests.first_damage(self.folder, shards):
                raise ValueError(f"{damage}; TokenCache.make makes it again.")
            self._checked = True
        return IdStore(
            [
                file.shard(lines_before)
                for file, lines_before in zip(
                    self._files, self._lines_before, strict=True
                )
            ],
            longest=max(shard["longest"] for shard in shards),
            max_tokens=self.max_tokens,
        )

    def place(self, line: int) -> str:
        """The two text files that have a line, and its number there.

        Args:
            line: int. Line number over all files, from 1.
        Raises:
            ValueError: if there is no such line.
        """
        ends = list(accumulate(self._lines))
        line = check_integer("line", line, 1, ends[-1])
        file = bisect_left(ends, line)
        within = line - (ends[file] - self._lines[file])
        return f"{' and '.join(self._paths[file])}, line {within}"

    def __len__(self) -> int:
        return sum(shard["pairs"] for shard in self._manifest["shards"])

    def _read_report(self):
        report = {}
        for file, before in zip(self._files, self._lines_before, strict=True):
            for reason, lines in file.left_out().items():
                report.setdefault(reason, []).extend(before + line for line in lines)
        return {reason: lines for reason, lines in report.items() if lines}

    def _warn(self):
        for reason, lines in self.report.items():
            first = "; ".join(self.place(line) for line in lines[:3])
            warnings.warn(
                f"{len(lines)} of {sum(self._lines)} pairs are left out, {reason}: "
                f"{first}{'; ...' if len(lines) > 3 else ''}.",
                stacklevel=3,
            )


def _digest(tokenizer_digest, max_tokens, files):
    digests = [file["sha256"] for file in files]
    return manifests.digest_of(tokenizer_digest, max_tokens, digests)


def _digest_of_manifest(manifest):
    return _digest(manifest["tokenizer"], manifest["max_tokens"], manifest["files"])


def _note_new_times(folder, digest, files):
    """Spares later makings from reading text again of which only the time is new."""
    if manifests.read_manifest(folder)["files"] != files:
        with contextlib.suppress(OSError), folder_lock(folder):
            manifest = manifests.read_manifest(folder)  # another may have made it anew
            if _digest_of_manifest(manifest) == digest:
                manifests.write_manifest(folder, manifest | {"files": files})


def _up_to_date(folder, paths, tokenizer, max_tokens, known=()):
    """The text files, and why the cache is not up to date; None if it is."""
    before = manifests.read_manifest(folder)
    known = [*known, *(before["files"] if before else [])]
    files = manifests.text_files([path for pair in paths for path in pair], known)
    for (source, target), one, other in zip(
        paths, files[::2], files[1::2], strict=True
    ):
        check_line_counts(source, target, one["lines"], other["lines"])
        are_one = bool(one["lines"]) and one["sha256"] == other["sha256"]
        refuse_copies(source, target, are_one)
    if before is None:
        return files, "there is none"
    if before["max_tokens"] != max_tokens:
        return files, "`max_tokens` has changed"
    if before["tokenizer"] != tokenizer.digest:
        return files, "the tokenizer has changed"
    if len(before["files"]) != len(files):
        count = len(before["files"])
        return files, f"it was made of {count} files, not of {len(files)}"
    for old, new in zip(before["files"], files, strict=True):
        if old["sha256"] != new["sha256"]:
            return files, f"{new['path']} has changed"
    return files, manifests.first_damage(folder, before["shards"])
