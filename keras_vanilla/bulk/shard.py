"""Translates one file of lines, which is a shard of a corpus.

The translations are written aside, and renamed when they are complete. Just before, the
record of the shard is written: digests of source and target, and lines with problems.
"""

import contextlib
import hashlib
import itertools
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keras_vanilla._atomic_write import remove_unfinished, sync_file
from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla._record import read_record, write_record
from keras_vanilla._types import PathLike
from keras_vanilla.bulk.line_translators import LineTranslation, open_line_translator
from keras_vanilla.data.compression import compressed
from keras_vanilla.data.lines import one_line, raw_lines
from keras_vanilla.translation.batch_translation import WINDOW

SECONDS_FOR_THE_DEAD = 60.0  # for the system to close the files of a killed worker


class Shard(NamedTuple):
    """One file of a corpus.

    Fields:
        source: Path. Lines to translate, decompressed by `data.compression.opened`.
        target: Path. The translations, line by line, compressed according to the name.
        folder: Path. Its record, and the translations until they are complete.
    """

    source: Path
    target: Path
    folder: Path

    @property
    def record(self) -> Path:
        """The file of its record."""
        return self.folder / "record.json"


def is_done(shard: Shard) -> bool:
    """Returns True if a shard is translated.

    Raises:
        FileExistsError: if there is a target without a record.
        ValueError: if source or target has changed since then, or the record is
            damaged.
    """
    if not shard.target.exists():
        return False
    if not shard.record.exists():
        raise FileExistsError(
            f"{shard.target} exists already and is not of this translation; nothing "
            "was written."
        )
    record = read_record(shard.record)
    for name, path in (("source", shard.source), ("target", shard.target)):
        if digest_of(path) != record[name]:
            raise ValueError(
                f"{path} has changed since the translation. Remove {shard.target} to "
                f"translate {shard.source.name} again."
            )
    return True


def digest_of(path: Path) -> str:
    """Returns the SHA-256 of a file or folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{file.relative_to(path)} {content}\n".encode())
    return digest.hexdigest()


class ShardTranslator:
    """Translates shards.

    Args:
        model: as in `open_line_translator`.
        **settings: as in `open_line_translator`.
    """

    def __init__(self, model: PathLike, **settings: Any):
        self._translate = open_line_translator(model, **settings)

    def translate(self, shard: Shard) -> Iterator[int]:
        """Translates a shard; yields the number of lines of each window.

        Raises:
            OSError: if a file cannot be read or written.
            ValueError: if the source is a damaged .gz, .xz or .zst file.
        """
        with _lock(shard.folder):
            if is_done(shard):  # by the worker that was killed before this one
                return
            remove_unfinished(shard.folder, re.compile(".*"))
            unfinished = shard.folder / f"unfinished{shard.target.suffix}"
            unfinished.unlink(missing_ok=True)
            source, number, problems = digest_of(shard.source), 0, []
            lines = raw_lines(shard.source)
            with compressed(unfinished) as file:
                while window := list(itertools.islice(lines, WINDOW)):
                    for result in self._translated(window):
                        number += 1
                        file.write(f"{one_line(result.text)}\n".encode())
                        if result.problem:
                            problems.append([number, result.problem])
                    yield len(window)
            sync_file(unfinished)
            record = {"source": source, "target": digest_of(unfinished)}
            record |= {"lines": number, "problems": problems}
            write_record(shard.record, record)
            os.replace(unfinished, shard.target)

    def _translated(self, lines):
        """Returns a `LineTranslation` for each line, including lines not in UTF-8."""
        results, texts = [None] * len(lines), {}
        for i, line in enumerate(lines):
            try:
                texts[i] = line.decode()
            except UnicodeDecodeError as error:
                byte = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
                results[i] = LineTranslation("", f"{byte} is not UTF-8")
        for i, result in zip(texts, self._translate([*texts.values()]), strict=True):
            results[i] = result
        return results


@contextlib.contextmanager
def _lock(folder):
    """Locks the folder of a shard; waits for the lock of a killed worker to end."""
    stop = time.monotonic() + SECONDS_FOR_THE_DEAD
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(folder_lock(folder))
                break
            except FolderInUse:
                if time.monotonic() > stop:
                    raise
                time.sleep(1)
        yield
