"""JSON files of other programs."""

import json
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """Reads the value in a JSON file.

    Args:
        path: path of the file.
    Raises:
        FileNotFoundError: if there is no such file.
        OSError: if it cannot be read.
        ValueError: if it is not JSON.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads the object in a JSON file.

    Args:
        path: path of the file.
    Raises:
        FileNotFoundError, OSError: as in `read_json`.
        ValueError: if it is not one JSON object.
    """
    values = read_json(path)
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} must hold a JSON object. Received: {type(values).__name__}"
        )
    return values
