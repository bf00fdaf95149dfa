"""Atomic writes of files and folders that survive a power cut."""

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from keras_vanilla._types import PathLike

_TEMPORARY = re.compile(r"\.(?P<stem>.+)\.[0-9a-f]{12}(?P<suffix>(\.[^.]+)?)")


@contextlib.contextmanager
def atomic_path(
    path: PathLike, overwrite: bool = True, parents: bool = False
) -> Iterator[Path]:
    """Yields a temporary path next to `path`, for a new file or folder.

    When the block ends without an error, the file or folder is synced to the disk and
    renamed to `path`; after an error it is removed. The temporary name is unique and
    keeps the suffix, which some writers need.

    Args:
        path: path. An existing file is replaced; a folder must not exist.
        overwrite: bool. Whether to replace a file, even one created during the block.
        parents: bool. Whether to create missing parent folders of `path`.
    Raises:
        FileExistsError: if the file exists and `overwrite` is False.
        OSError: if it cannot be written; an existing file is then kept.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(6)}{path.suffix}")
    try:
        with named_errors(path, temporary):
            if parents:
                path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            _sync(temporary)
            if overwrite:
                os.replace(temporary, path)
            else:
                _rename_new(temporary, path)
            _sync_names(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            if temporary.is_dir():
                shutil.rmtree(temporary)
            else:
                temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def atomic_write(
    path: PathLike, overwrite: bool = True, parents: bool = False
) -> Iterator[BinaryIO]:
    """Opens a binary file for writing, which is renamed to `path` after the block.

    Args:
        path: path of the file.
        overwrite: bool, as in `atomic_path`.
        parents: bool, as in `atomic_path`.
    Raises:
        OSError: as in `atomic_path`.
    """
    with atomic_path(path, overwrite, parents) as temporary:
        with open(temporary, "xb") as file:
            yield file


@contextlib.contextmanager
def named_errors(path: PathLike, temporary: PathLike | None = None) -> Iterator[None]:
    """Adds the path of a file to an OSError of the block without a path.

    TensorFlow's error for a full disk becomes an OSError.

    Args:
        path: path, or another name of the file such as "standard output".
        temporary: path that an error may name instead of `path`.
    Raises:
        OSError: that of the block, with the name `path`.
    """
    try:
        yield
    except OSError as error:
        name = str(path if error.filename is None else error.filename)
        if temporary is not None:
            name = name.replace(str(temporary), str(path))
        if error.errno is None or name == str(error.filename):
            raise
        raise OSError(error.errno, error.strerror, name) from error
    except Exception as error:
        if (full := os.strerror(errno.ENOSPC)) not in str(error):
            raise
        raise OSError(errno.ENOSPC, full, str(path)) from error


def remove_unfinished(folder: PathLike, names: re.Pattern) -> None:
    """Removes temporary files of interrupted writes.

    No other process may write to the folder meanwhile, see `folder_lock`.

    Args:
        folder: path; it may not exist.
        names: pattern for the final names of the files.
    """
    for path in Path(folder).glob(".*"):
        match = _TEMPORARY.fullmatch(path.name)
        if match and names.fullmatch(match["stem"] + match["suffix"]):
            if path.is_file():
                path.unlink(missing_ok=True)


def refuse_existing(path: PathLike) -> None:
    """Refuses to write to a path that exists, also as a broken link.

    Raises:
        FileExistsError: if it does.
    """
    if os.path.lexists(path):
        raise FileExistsError(f"{path} exists already; nothing was written.")


def refuse_unwritable(path: PathLike) -> None:
    """Refuses a path that exists, or whose folder is not writable.

    Missing folders are allowed, because they are created when the file is written.

    Raises:
        FileExistsError: if the path exists.
        NotADirectoryError: if there is a file in place of a folder.
        PermissionError: if the folder is read-only.
    """
    refuse_existing(path)
    folder = next(parent for parent in Path(path).absolute().parents if parent.exists())
    if not folder.is_dir():
        raise NotADirectoryError(f"{path} cannot be written: {folder} is not a folder.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path} cannot be written: its folder is read-only.")


def atomic_write_text(path: PathLike, text: str, overwrite: bool = True) -> None:
    """Writes a small text file in UTF-8 atomically."""
    with atomic_write(path, overwrite) as file:
        file.write(text.encode())


def sync_file(path: PathLike) -> None:
    """Syncs a file to the disk, so that it survives a power cut."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _rename_new(temporary, path):
    """Renames a file or folder to an unused name, without a race."""
    try:
        if temporary.is_dir():
            os.rename(temporary, path)  # fails if there is a file
        else:
            os.link(temporary, path)
            temporary.unlink()
    except OSError:
        refuse_existing(path)
        if temporary.is_dir():
            raise
        open(path, "xb").close()  # for file systems without hard links, such as FAT
        os.replace(temporary, path)


def _sync(path):
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    for each in files:
        sync_file(each)


def _sync_names(folder):
    """Makes a rename survive a power cut, if folders can be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
