"""One writer per folder: a lock that ends with its process, however that ends."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from keras_vanilla._types import PathLike

NAME = ".lock"


class FolderInUse(OSError):
    """Another process writes into the folder."""


@contextlib.contextmanager
def folder_lock(folder: PathLike) -> Iterator[None]:
    """Holds the lock of a folder, which is made if it does not exist.

    Args:
        folder: path.
    Raises:
        FolderInUse: if another process holds it; the error names that process.
        OSError: if the lock cannot be written.
    """
    path = Path(folder, NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _try_lock(descriptor):
            owner = os.read(descriptor, 200).decode("utf-8", "replace").strip()
            raise FolderInUse(
                f"{folder} is in use by another process ({owner or 'unknown'}); "
                "nothing was written."
            )
        os.ftruncate(descriptor, 0)
        os.write(
            descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode()
        )
        yield
    finally:
        os.close(descriptor)  # the lock ends with it; the file stays for the next one


def _try_lock(descriptor):
    """Whether this process now holds the lock; the owner's text is never locked."""
    if os.name == "nt":
        import msvcrt

        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        os.lseek(descriptor, 0, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
