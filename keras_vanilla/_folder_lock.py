"""A lock for one writer per folder, released however its process ends."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from keras_vanilla._types import PathLike

NAME = ".lock"


class FolderInUse(OSError):
    """Raised if another process is writing into the folder."""


@contextlib.contextmanager
def folder_lock(folder: PathLike) -> Iterator[None]:
    """Holds the lock of a folder, which is created if it does not exist.

    Args:
        folder: path.
    Raises:
        FolderInUse: if another process holds it; the error names that process.
        OSError: if the lock cannot be written.
    """
    descriptor = _locked_file(Path(folder, NAME))
    try:
        owner = f"process {os.getpid()} on {socket.gethostname()}"
        os.ftruncate(descriptor, 0)
        os.write(descriptor, owner.encode())
        yield
    finally:
        os.close(descriptor)  # releases the lock; the file is kept


def _locked_file(path):
    """Locks the lock file, and returns its descriptor."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if not _try_lock(descriptor):
            owner = os.read(descriptor, 200).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise FolderInUse(
                f"{path.parent} is in use by another process ({owner or 'unknown'}); "
                "nothing was written."
            )
        if _is_open_as(descriptor, path):
            return descriptor
        os.close(descriptor)  # its owner removed it before it was locked


def _is_open_as(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _try_lock(descriptor):
    """Returns True if the lock was acquired; the owner's text is never locked."""
    if os.name == "nt":
        import msvcrt

        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            return True
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)  # position of the owner's text
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
