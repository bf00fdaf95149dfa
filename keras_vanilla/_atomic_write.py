"""Files and folders that are written whole or not at all, and survive a power cut."""

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
    """A temporary path beside `path`, for a file or a folder that is to have its name.

    When the block ends without an error, what was written there is synced to the disk
    and renamed to `path`; after an error it is removed. The temporary name is unique
    and keeps the suffix, which some writers look at.

    Args:
        path: path. A file there is replaced; a folder there must not exist.
        overwrite: bool. Replace a file, even one that came during the block.
        parents: bool. Make the folders of `path` that are missing.
    Raises:
        FileExistsError: if there is a file and `overwrite` is False.
        OSError: if it cannot be written; what had the name before keeps it.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(6)}{path.suffix}")
    try:
        with named_errors(path, temporary):
            if parents:
                _make_folder(path.parent)
            yield temporary
            _sync(temporary)
            if overwrite:
                os.replace(temporary, path)
            else:
                _rename_new(temporary, path)
            _sync_names(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            _remove(temporary)
        raise


@contextlib.contextmanager
def atomic_write(
    path: PathLike, overwrite: bool = True, parents: bool = False
) -> Iterator[BinaryIO]:
    """A binary file to write, which has the name `path` when the block has ended.

    Args:
        path: path of the file.
        overwrite: bool, as of `atomic_path`.
        parents: bool, as of `atomic_path`.
    Raises:
        OSError: as `atomic_path`.
    """
    with atomic_path(path, overwrite, parents) as temporary:
        with open(temporary, "xb") as file:
            yield file


@contextlib.contextmanager
def named_errors(path: PathLike, temporary: PathLike | None = None) -> Iterator[None]:
    """Gives an OSError of the block the path of a file, if it names none.

    TensorFlow's own error of a full disk becomes an OSError.

    Args:
        path: path, or another name of the file such as "standard output".
        temporary: path that an error may name instead of `path`.
    Raises:
        OSError: as the block; it names `path`.
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
    """Removes the temporary files that killed writes have left.

    Only where nothing else writes now: see `folder_lock`.

    Args:
        folder: path; it need not exist.
        names: pattern of the names of the files that were to be written.
    """
    for path in Path(folder).glob(".*"):
        match = _TEMPORARY.fullmatch(path.name)
        if match and names.fullmatch(match["stem"] + match["suffix"]):
            if path.is_file():
                path.unlink(missing_ok=True)


def atomic_write_text(path: PathLike, text: str, overwrite: bool = True) -> None:
    """Writes a small text file in UTF-8, whole or not at all."""
    with atomic_write(path, overwrite) as file:
        file.write(text.encode())


def sync_file(path: PathLike) -> None:
    """Makes what is in a file last through a power cut."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def _make_folder(path):
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # what "exists" is a file where a folder is needed
        raise NotADirectoryError(
            errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path)
        ) from error


def _rename_new(temporary, path):
    """Renames a file or folder to a name that nothing has, at no instant."""
    try:
        if temporary.is_dir():
            os.rename(temporary, path)  # refused where there is a file
        else:
            os.link(temporary, path)
            temporary.unlink()
    except OSError as error:
        if os.path.lexists(path):
            raise FileExistsError(
                f"{path} exists already; nothing was written."
            ) from error
        if temporary.is_dir():
            raise
        open(path, "xb").close()  # a file system without hard links, such as FAT
        os.replace(temporary, path)


def _sync(path):
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    for each in files:
        sync_file(each)


def _sync_names(folder):
    """Makes a rename last through a power cut, where folders can be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
