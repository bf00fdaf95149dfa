"""A Keras archive, looked at before Keras reads it."""

import zipfile
from pathlib import Path

LARGEST_CONFIG = 2**24  # bytes; Keras reads it as a whole, and into many objects
MOST_TIMES = 20  # the archive's own size, for what all its parts unpack to


def check_archive(path: Path) -> None:
    """Refuses a file that is not a Keras archive, or would fill the memory.

    Args:
        path: Path of a `.keras` file.
    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a Keras archive, is cut short, or its parts unpack to
            far more than the archive.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {part.filename: part.file_size for part in archive.infolist()}
    except zipfile.BadZipFile as error:
        if _is_tflite(path):
            raise ValueError(
                f"{path} is an exported .tflite file. Expected the .keras file it was "
                "exported from; `keras-vanilla translate` and `evaluate` take both."
            ) from error
        raise ValueError(f"{path} is not a Keras archive, or is cut short.") from error
    if "config.json" not in sizes:
        raise ValueError(f"{path} is not a Keras archive: it has no config.json.")
    for name, size in sizes.items():
        if name.endswith(".json") and size > LARGEST_CONFIG:
            raise ValueError(
                f"{path} is not a translator's archive: its {name} has {size:,} bytes."
            )
    if sum(sizes.values()) > MOST_TIMES * path.stat().st_size + LARGEST_CONFIG:
        raise ValueError(
            f"{path} is not a translator's archive: its {len(sizes)} parts would "
            f"unpack to {sum(sizes.values()):,} bytes."
        )


def _is_tflite(path):
    with open(path, "rb") as file:
        return file.read(8)[4:] == b"TFL3"
