"""The progress of one shard, for resuming after an interruption."""

import dataclasses
import json
from pathlib import Path

from keras_vanilla._atomic_write import atomic_write_text
from keras_vanilla._checks import has_form, json_of_form

NAME = "journal.json"
FORM = dict.fromkeys(("lines", "text_bytes", "problems", "problem_bytes"), int)
FORM["digest"] = str
SOURCES = (int, int), type(None)  # forms of `Journal.source`


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
        path = folder / NAME
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
        atomic_write_text(folder / NAME, json.dumps(dataclasses.asdict(self)))


def identity(source: Path) -> list[int]:
    """Returns size and modification time of a file, as in `Journal.source`."""
    status = source.stat()
    return [status.st_size, status.st_mtime_ns]
