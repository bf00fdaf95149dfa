"""Text and JSON files of other programs."""

import json
from pathlib import Path
from typing import Any


def read_bytes(path: Path) -> bytes:
    """Reads a file.

    Raises:
        FileNotFoundError: if there is no such file.
        OSError: if it cannot be read.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    return path.read_bytes()


def read_text(path: Path) -> str:
    """Reads the text in a UTF-8 file, with its line ends.

    Raises:
        FileNotFoundError, OSError: as in `read_bytes`.
        ValueError: if it is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}.") from None


def read_json(path: Path) -> Any:
    """Reads the value in a JSON file.

    Args:
        path: path of the file.
    Raises:
        FileNotFoundError, OSError: as in `read_bytes`.
        ValueError: if it is not JSON.
    """
    try:
        return json.loads(read_bytes(path).decode("utf-8"))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads the object in a JSON file.

    Args:
        path: path of the file.
    Raises:
        FileNotFoundError, OSError: as in `read_bytes`.
        ValueError: if it is not one JSON object.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} must hold a JSON object. Received: {type(values).__name__}"
        )
    return values
