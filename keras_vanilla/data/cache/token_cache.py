"""A corpus of any size as ids on the disk."""

import os
import shutil
import warnings
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla._checks import check_integer
from keras_vanilla.data.cache import manifest as manifests
from keras_vanilla.data.cache.pairs import CachedPairs
from keras_vanilla.data.cache.parts import Job, made_before
from keras_vanilla.data.cache.progress import MakingProgress
from keras_vanilla.data.cache.workers import make_parts
from keras_vanilla.data.shards import names_of, parts, shard_paths
from keras_vanilla.tokenizer import Tokenizer

LINES_OF_A_PART = 500_000
SPECIAL_IDS = ("pad_id", "unknown_id", "start_id", "end_id")


class TokenCache:
    """Pairs of a corpus of any size, tokenised once and read from the disk.

    `batches` takes it in the place of a corpus, with the tokenizer it was made with,
    and gives the batches that it would of a `ParallelCorpus` of the same lines. Every
    pair is read by its number, so that an epoch's order is drawn over all shards at
    once: shards read side by side through a buffer would be mixed less. Where several
    processes train, each reads its own rows alone.

    The folder holds TFRecord files of `tf.train.Example`, in the corpus's order, with
    the int64 lists `source_ids`, `target_ids` and `line`, for any other reader too.
    Line numbers count from 1 over all shards.

    Args:
        folder: path of a cache that `TokenCache.make` has made.
    Attributes:
        report: dict of reason -> line numbers left out.
        origin: str. What to call this text in an error.
        digest: str. SHA-256 of all that decides the batches.
        max_tokens: int. Longer pairs were left out.
    Raises:
        FileNotFoundError: if there is no whole cache in the folder.
        ValueError: if it is damaged or of another version.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        made = manifests.read(self.folder)
        self._manifest, self._shards = made, manifests.shards(made)
        self.report, self.max_tokens = made["report"], made["settings"]["max_tokens"]
        self.origin, self.digest = names_of(self._shards), made["digest"]

    @classmethod
    def open(cls, folder) -> "TokenCache":
        """The cache in a folder, as it is; see `TokenCache`."""
        return cls(folder)

    @classmethod
    def make(
        cls,
        source,
        target,
        tokenizer,
        folder,
        max_tokens: int = 256,
        processes: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> "TokenCache":
        """Tokenises text files into a folder, unless that has been done.

        A cache is used again only for the same text, tokenizer and `max_tokens`: a file
        of the same size and time of change is taken to be the same, any other is read
        to compare. A making that was killed is gone on with. With several processes
        that train, make it in one of them first.

        Pairs with nothing but white space on either side, or longer than `max_tokens`,
        are left out with a warning, and reported.

        Args:
            source: path of UTF-8 text, one sentence a line; gzip when it ends in ".gz".
                Or a list of paths.
            target: path of its translation, line by line; or a list of as many.
            tokenizer.
            folder: path of a folder, made if there is none.
            max_tokens: int. Longest sequence, its end counted, on either side.
            processes: int. How many to make it in; None means one a processor.
            progress: called with sentences that say how far it is, or why a cache that
                is there is made again.
        Raises:
            FileNotFoundError, IsADirectoryError: if a path is not a file.
            ValueError: if a number is out of its range, there is no file, or not as
                many of both, the line counts of two files differ, a line is not UTF-8,
                a gzip file is damaged, a file changes while it is read, or no pair is
                left.
            RuntimeError: if a process that makes a part is killed.
        """
        check_integer("max_tokens", max_tokens, 2)
        check_integer("processes", 1 if processes is None else processes, 1)
        folder, say = Path(folder), progress or (lambda message: None)
        shards = shard_paths(source, target)
        settings = {
            "version": manifests.VERSION,
            "lines_of_a_part": LINES_OF_A_PART,
            "max_tokens": int(max_tokens),
            "tokenizer": tokenizer.digest,
        }
        before = manifests.found(folder)
        files = manifests.files_now(shards, before)
        why = manifests.why_not(before, settings, files, folder)
        if why is None:
            made = before | {"files": files}
        else:
            if before:
                say(f"{folder} is made again: {why}.")
            making = _Making(shards, tokenizer, folder, settings, files)
            made = making.run(processes or os.cpu_count() or 1, say)
        if why or made != before:  # a folder that cannot be written is of use too
            manifests.write(folder, made)
        cache = cls(folder)
        cache._warn()
        return cache

    def id_store(self, tokenizer: Tokenizer) -> CachedPairs:
        """The ids of every pair, for `batches`; they stay on the disk.

        Raises:
            ValueError: if the tokenizer is not the one that the cache was made with.
        """
        if tokenizer.digest != self._manifest["settings"]["tokenizer"]:
            raise ValueError(
                f"{self.folder} was made with another tokenizer than the one received: "
                "make it again with this one."
            )
        paths = [self.folder / part["file"] for part in self._manifest["parts"]]
        index = self.folder / self._manifest["index"]
        return CachedPairs(index, paths, self._manifest["longest"], self.max_tokens)

    def place(self, line: int) -> str:
        """The files of a line number, and the number it has there.

        Raises:
            ValueError: if there is no such line.
        """
        ends = list(accumulate(self._manifest["lines"]))
        if not 1 <= line <= ends[-1]:
            raise ValueError(f"`line` must be from 1 to {ends[-1]}. Received: {line}")
        shard = bisect_left(ends, line)
        within = line - (ends[shard] - self._manifest["lines"][shard])
        return f"{' and '.join(self._shards[shard])}, line {within}"

    def __len__(self) -> int:
        return self._manifest["pairs"]

    def _warn(self):
        total = sum(self._manifest["lines"])
        for reason, lines in self.report.items():
            first = "; ".join(self.place(line) for line in lines[:3])
            warnings.warn(
                f"{len(lines)} of {total} pairs are left out, {reason}: {first}"
                f"{'; ...' if len(lines) > 3 else ''}.",
                stacklevel=3,
            )


class _Making:
    """One making of a cache: its parts, then one index of them all.

    Names hold the digest, so that nothing of the cache before is written over, and a
    part that is there is of this very text.
    """

    def __init__(self, shards, tokenizer, folder, settings, files):
        self._shards, self._folder = shards, folder
        self._settings, self._files = settings, files
        self._digest = manifests.digest(settings, files)
        self._models = tokenizer.source_model, tokenizer.target_model
        self._special_ids = [getattr(tokenizer, name) for name in SPECIAL_IDS]

    def run(self, processes, say):
        """Makes what is not there yet, and returns the manifest."""
        self._folder.mkdir(parents=True, exist_ok=True)
        cut = parts(self._shards, LINES_OF_A_PART)
        jobs = [Job(part, i, self._path(f"-{i:05d}")) for i, part in enumerate(cut)]
        results = {job.number: made_before(job) for job in jobs}
        missing = [job for job in jobs if results[job.number] is None]
        progress = MakingProgress(sum(job.part.lines for job in missing), say)
        settings = self._models, self._special_ids, self._settings["max_tokens"]
        for job, made in zip(
            missing, make_parts(missing, settings, processes, progress), strict=True
        ):
            results[job.number] = made
        manifests.refuse_changed(self._files)
        self._join_indexes(jobs)
        return self._manifest(jobs, [results[job.number] for job in jobs])

    def _path(self, suffix):
        return os.fspath(self._folder / f"cache-{self._digest[:16]}{suffix}")

    def _join_indexes(self, jobs):
        with atomic_write(self._path(".index")) as joined:
            for job in jobs:
                with open(f"{job.stem}.index", "rb") as index:
                    shutil.copyfileobj(index, joined)

    def _manifest(self, jobs, results):
        lines = dict.fromkeys(self._shards, 0)
        report = {}
        for job, result in zip(jobs, results, strict=True):
            lines[job.part.source, job.part.target] += job.part.lines
            for reason, numbers in result["left_out"].items():
                report.setdefault(reason, []).extend(numbers)
        pairs = sum(result["pairs"] for result in results)
        if not pairs:
            raise ValueError(
                f"{names_of(self._shards)}: none of {sum(lines.values())} pairs has "
                f"text on both sides and at most {self._settings['max_tokens']} tokens."
            )
        return {
            "settings": self._settings,
            "digest": self._digest,
            "files": self._files,
            "lines": list(lines.values()),
            "parts": [
                {"file": Path(f"{job.stem}.tfrecord").name, "bytes": result["bytes"]}
                for job, result in zip(jobs, results, strict=True)
            ],
            "index": Path(self._path(".index")).name,
            "pairs": pairs,
            "longest": max(result["longest"] for result in results),
            "report": report,
        }
