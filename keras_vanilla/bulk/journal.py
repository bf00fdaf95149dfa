"""What is done of one shard: enough to go on after a kill."""

import dataclasses
import json
from pathlib import Path

from keras_vanilla._atomic_write import atomic_write_text
from keras_vanilla._checks import has_form, json_of_form

NAME = "journal.json"
FORM = dict.fromkeys(("lines", "text_bytes", "problems", "problem_bytes"), int)
FORM["digest"] = str
SOURCES = (int, int), type(None)  # what `Journal.source` may be


@dataclasses.dataclass(frozen=True)
class Journal:
    """What is done of one shard, all of it on the disk.

    Args:
        lines: int. Lines of the source that are translated.
        text_bytes: int. Bytes of their translations.
        problems: int. How many of them have a problem.
        problem_bytes: int. Bytes of the list of problems.
        digest: str. SHA-256 of the source's lines so far, in hexadecimals.
        source: list of int, or None. Bytes and time of change, in nanoseconds, of the
            source, when its translations are all in the output folder.
    """

    lines: int = 0
    text_bytes: int = 0
    problems: int = 0
    problem_bytes: int = 0
    digest: str = ""
    source: list[int] | None = None

    @property
    def finished(self) -> bool:
        """Whether the shard is translated, to its last line."""
        return self.source is not None

    @classmethod
    def read(cls, folder: Path) -> "Journal":
        """The journal in a folder; where there is none, that of an unread shard.

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
        """Writes the journal into a folder, whole or not at all."""
        atomic_write_text(folder / NAME, json.dumps(dataclasses.asdict(self)))


def identity(source: Path) -> list[int]:
    """Bytes and time of change of a file, as `Journal.source` has them."""
    status = source.stat()
    return [status.st_size, status.st_mtime_ns]
