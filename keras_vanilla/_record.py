"""Small records in JSON with a digest, so that a damaged one is not read as another."""

import hashlib
import json
from pathlib import Path
from typing import Any

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla._types import PathLike


def write_record(path: PathLike, record: dict[str, Any]) -> None:
    """Writes a record atomically.

    Args:
        path: path of the file, which is replaced if it exists.
        record: dict of values that JSON supports.
    """
    with atomic_write(path) as file:
        file.write(_content(record))


def read_record(path: PathLike) -> dict[str, Any]:
    """Returns what `write_record` wrote.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if a byte of it is different from what was written.
    """
    content = Path(path).read_bytes()
    try:
        record = json.loads(content)
        del record["digest"]
        if content == _content(record):
            return record
    except (KeyError, TypeError, ValueError, RecursionError):
        pass
    raise ValueError(
        f"{path} is damaged, or of another version of keras_vanilla or another program."
    )


def _content(record):
    digest = hashlib.sha256(json.dumps(record).encode()).hexdigest()
    return (json.dumps({**record, "digest": digest}, indent=2) + "\n").encode()
