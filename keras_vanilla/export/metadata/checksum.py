"""The checksum of a `.tflite` file, stored in its last 32 bytes."""

import hashlib
import mmap

import numpy as np

from keras_vanilla._types import PathLike

NAME = "keras_vanilla_sha256"  # name of the metadata entry
SIZE = hashlib.sha256().digest_size
BLANK = bytes(SIZE)


def with_digest(content: bytes) -> bytes:
    """Replaces the last 32 bytes of the content by the SHA-256 of the rest."""
    body = memoryview(content)[:-SIZE]
    return b"".join([body, hashlib.sha256(body).digest()])


def has_checksum(path: PathLike) -> bool:
    """Returns True if a file has a checksum; version 0.5.0 and earlier wrote none."""
    with open(path, "rb") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(NAME.encode()) >= 0


def sha256_of(path: PathLike) -> str:
    """Returns the SHA-256 of a file in hexadecimal, as `sha256sum` prints it.

    Args:
        path: path of a file.
    Raises:
        OSError: if the file cannot be read.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_checksum(path: PathLike) -> None:
    """Refuses a file whose content does not match its checksum.

    Args:
        path: path of a `.tflite` file. A file without a checksum is accepted.
    Raises:
        OSError: if the file cannot be read.
        ValueError: if the checksum does not match.
    """
    if not has_checksum(path):
        return
    content = np.memmap(path, np.uint8, "r")
    if hashlib.sha256(content[:-SIZE]).digest() != content[-SIZE:].tobytes():
        raise ValueError(
            f"{path} is damaged or cut short: its bytes do not match its checksum. "
            "Copy or export it again."
        )
