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
    descriptor = _locked_file(Path(folder, NAME))
    try:
        owner = f"process {os.getpid()} on {socket.gethostname()}"
        os.ftruncate(descriptor, 0)
        os.write(descriptor, owner.encode())
        yield
    finally:
        os.close(descriptor)  # the lock ends with it; the file stays for the next one


def _locked_file(path):
    """The descriptor of the lock file, which this process now holds."""
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
        os.close(descriptor)  # its owner removed it before this process had the lock


def _is_open_as(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _try_lock(descriptor):
    """Whether this process now holds the lock; the owner's text is never locked."""
    if os.name == "nt":
        import msvcrt

        os.lseek(descriptor, 1 << 20, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            return True
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)  # where the owner's text is
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
