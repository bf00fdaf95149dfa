"""Translates one file of lines, and resumes after an interruption."""

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keras_vanilla._atomic_write import atomic_path, atomic_write_text
from keras_vanilla._checks import has_form, json_of_form
from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla._types import PathLike
from keras_vanilla.bulk.line_translators import (
    LineTranslation,
    open_line_translator,
)
from keras_vanilla.data.compression import compressed
from keras_vanilla.data.lines import one_line, raw_lines
from keras_vanilla.translation.batch_translation import WINDOW

JOURNAL = "journal.json"
FORM = dict.fromkeys(("lines", "text_bytes", "problems", "problem_bytes"), int)
FORM["digest"] = str
SOURCES = (int, int), type(None)  # forms of `Journal.source`
SECONDS_FOR_THE_DEAD = 60.0  # for the system to close the files of a killed worker


@dataclasses.dataclass(frozen=True)
class Journal:
    """The progress of one shard that is already on the disk.

    Args:
        lines: int. Number of translated lines.
        text_bytes: int. Bytes of their translations.
        problems: int. Number of lines with a problem.
        problem_bytes: int. Bytes of the list of problems.
        digest: str. SHA-256 of the source's lines so far, in hexadecimal.
        source: list of int, or None. Size in bytes and modification time in nanoseconds
            of the source, once all translations are in the output folder.
    """

    lines: int = 0
    text_bytes: int = 0
    problems: int = 0
    problem_bytes: int = 0
    digest: str = ""
    source: list[int] | None = None

    @property
    def finished(self) -> bool:
        """True if the shard is translated completely."""
        return self.source is not None

    @classmethod
    def read(cls, folder: Path) -> "Journal":
        """Reads the journal in a folder, or returns that of an unread shard.

        Raises:
            ValueError: if it is damaged.
        """
        path = folder / JOURNAL
        if not path.exists():
            return cls()
        record = json_of_form(path.read_bytes(), FORM)
        if record is None or not any(
            has_form(record, {"source": each}) for each in SOURCES
        ):
            raise ValueError(
                f"{path} is damaged: remove {folder} to translate that file again."
            )
        return cls(**{name: record[name] for name in (*FORM, "source")})

    def write(self, folder: Path) -> None:
        """Writes the journal into a folder atomically."""
        atomic_write_text(folder / JOURNAL, json.dumps(dataclasses.asdict(self)))


def identity(source: Path) -> list[int]:
    """Returns size and modification time of a file, as in `Journal.source`."""
    status = source.stat()
    return [status.st_size, status.st_mtime_ns]


class Shard(NamedTuple):
    """One file of a corpus.

    Fields:
        source: Path. Lines to translate, decompressed by `data.compression.opened`.
        target: Path. The translations, line by line, compressed according to the name.
        folder: Path. Folder of the state for resuming.
    """

    source: Path
    target: Path
    folder: Path

    @property
    def problems(self) -> Path:
        """The file of lines with problems, as number, tab, problem."""
        return self.folder / "problems"

    @property
    def text(self) -> Path:
        """The file of the translations so far."""
        return self.folder / "text"


class ShardTranslator:
    """Translates shards, each from its first line without a translation.

    Args:
        model: as in `open_line_translator`.
        **settings: as in `open_line_translator`.
    """

    def __init__(self, model: PathLike, **settings: Any):
        self._translate = open_line_translator(model, **settings)

    def translate(self, shard: Shard) -> Iterator[None]:
        """Translates a shard to its end; yields after each window of lines.

        Raises:
            OSError: if a file cannot be read or written.
            ValueError: if the source has changed, or is a damaged .gz file.
        """
        with _lock(shard.folder):
            journal = Journal.read(shard.folder)
            if journal.finished and shard.target.exists():
                return
            if journal.finished:  # the result was removed to create it again
                journal = Journal()
            source, digest = identity(shard.source), hashlib.sha256()
            lines = raw_lines(shard.source)
            _pass_over(lines, journal, digest, shard)
            while window := list(itertools.islice(lines, WINDOW)):
                journal = self._window(window, journal, digest, shard)
                yield
            shard.text.touch()
            with atomic_path(shard.target) as temporary:
                with shard.text.open("rb") as text, compressed(temporary) as file:
                    shutil.copyfileobj(text, file)
            dataclasses.replace(journal, source=source).write(shard.folder)
            shard.text.unlink()

    def _window(self, lines, journal, digest, shard):
        """Translates a window of lines; returns the updated journal."""
        for line in lines:
            digest.update(line + b"\n")
        results = self._translated(lines)
        texts = "".join(one_line(result.text) + "\n" for result in results).encode()
        numbered = enumerate(results, start=journal.lines + 1)
        bad = [(number, each.problem) for number, each in numbered if each.problem]
        problems = "".join(f"{number}\t{problem}\n" for number, problem in bad).encode()
        _append(shard.text, journal.text_bytes, texts)
        _append(shard.problems, journal.problem_bytes, problems)
        journal = Journal(
            lines=journal.lines + len(lines),
            text_bytes=journal.text_bytes + len(texts),
            problems=journal.problems + len(bad),
            problem_bytes=journal.problem_bytes + len(problems),
            digest=digest.hexdigest(),
        )
        journal.write(shard.folder)
        return journal

    def _translated(self, lines):
        """Returns a `LineTranslation` for each line, including lines not in UTF-8."""
        results = [None] * len(lines)
        texts = {}
        for i, line in enumerate(lines):
            try:
                texts[i] = line.decode()
            except UnicodeDecodeError as error:
                byte = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
                results[i] = LineTranslation("", f"{byte} is not UTF-8")
        for i, result in zip(texts, self._translate([*texts.values()]), strict=True):
            results[i] = result
        return results


def _pass_over(lines, journal, digest, shard):
    """Skips lines that are already translated, and checks that they are unchanged."""
    for line in itertools.islice(lines, journal.lines):
        digest.update(line + b"\n")
    if journal.lines and digest.hexdigest() != journal.digest:
        raise ValueError(
            f"{shard.source} has changed: its first {journal.lines:,} lines, which are "
            f"translated already, differ. Remove {shard.folder} to translate it again."
        )


def _append(path, size, content):
    """Writes after the first `size` bytes of a file, and drops the rest of it."""
    with open(path, "r+b" if path.exists() else "xb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


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
