"""Snapshot files, one per step, written atomically and read only if they are whole.

A snapshot is the line `FORMAT`, the SHA-256 of all that follows, and an `.npz`: JSON in
UTF-8, then the arrays that it refers to. Its contents are those of `exact_resume.py`,
`_Training._state_of`.
"""

import contextlib
import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 (NumPy then knows the names of its types)
import numpy as np

from keras_vanilla._atomic_write import atomic_path, remove_unfinished
from keras_vanilla._folder_lock import NAME as LOCK
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._types import PathLike

KEPT = 2  # if the last snapshot is damaged, the previous one is used
FORMAT = b"keras_vanilla snapshot 2\n"
NAME = re.compile(r"step-(\d+)\.npz")
FILES = ("step-*.npz", "step-*.npz.damaged", ".step-*.npz", LOCK)


class Damaged(ValueError):
    """A file is not what was written, or is of another version."""


def folder_is_gone(folder: PathLike) -> FileNotFoundError:
    """The error for a folder that was renamed or removed during training."""
    return FileNotFoundError(
        f"{folder} is gone: it was renamed or removed while its training ran. Rename "
        "it back and start the same training again, which resumes from its last "
        "snapshot."
    )


class Snapshots:
    """The last two snapshots in a folder, named after their steps.

    Args:
        folder: path; `writing` creates it.
    """

    def __init__(self, folder: PathLike):
        self.folder = Path(folder)
        self._writer = ThreadPoolExecutor(1, "snapshot")
        self._in_background = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Locks the folder, and removes the files of interrupted writes.

        Raises:
            FolderInUse: if another process writes to the folder.
            OSError: if the lock cannot be written.
        """
        with folder_lock(self.folder):
            remove_unfinished(self.folder, NAME)
            try:
                yield
            finally:
                self.wait()

    def save(self, step: int, packed: list) -> None:
        """Writes a snapshot, then deletes all but the last two.

        Args:
            step: int. Number of updates so far.
            packed: the result of `pack`.
        Raises:
            OSError: if it cannot be written; previous snapshots are not changed.
        """
        _write(self.path(step), packed)
        for path in self.paths()[:-KEPT]:
            path.unlink(missing_ok=True)

    def save_in_background(self, step: int, packed: list) -> None:
        """Calls `save` in a thread; `wait` returns its error."""
        self._in_background = self._writer.submit(self.save, step, packed)

    def wait(self) -> OSError | None:
        """Waits for the write in the background; returns its OSError, if any.

        Raises:
            FileNotFoundError: if the folder no longer exists.
            Exception: if the write failed with another error.
        """
        error = self._in_background and self._in_background.exception()
        self._in_background = None
        if error is not None and not self.folder.is_dir():
            raise folder_is_gone(self.folder) from error
        if error is not None and not isinstance(error, OSError):
            raise error
        return error

    def newest(self) -> Any:
        """The state of the last snapshot that is not damaged; None if there is none.

        A damaged snapshot is renamed with a warning, and the previous one is used.

        Raises:
            ValueError: if there are snapshots and all of them are damaged.
            OSError: if a snapshot cannot be read, which does not mean it is damaged.
        """
        damaged = []
        for path in reversed(self.paths()):
            try:
                state = _read(path)
            except Damaged as error:
                warnings.warn(str(error), stacklevel=2)
                damaged.append(path)
                continue
            for each in damaged:  # these must not count as the last two
                with contextlib.suppress(OSError):
                    each.rename(f"{each}.damaged")
            return state
        if damaged:
            raise ValueError(
                f"No snapshot in {self.folder} can be read: delete the folder to start "
                "again from the beginning."
            )
        return None

    def paths(self) -> list[Path]:
        """The snapshot files, ordered by step."""
        if not self.folder.is_dir():
            return []
        return sorted(p for p in self.folder.iterdir() if NAME.fullmatch(p.name))

    def last_step(self) -> int | None:
        """The step of the last snapshot; None if there is none."""
        paths = self.paths()
        return int(NAME.fullmatch(paths[-1].name).group(1)) if paths else None

    def path(self, step: int) -> Path:
        """The path of the snapshot of a step."""
        return self.folder / f"step-{step:012d}.npz"


def pack(value: Any) -> list:
    """A copy of a value that does not change: its structure in JSON, then its arrays.

    `unpack` returns the same value with the same types. Arrays that are read-only are
    not copied.

    Args:
        value: nested dicts, lists and tuples of NumPy arrays and numbers, Python's
            numbers, texts and None.
    Raises:
        TypeError: if a value has another type.
    """
    arrays = []

    def structure(value):
        kind = type(value)
        if kind in (bool, int, float, str, type(None)):
            return value
        if kind is list:
            return [structure(each) for each in value]
        if kind is tuple:
            return {"tuple": [structure(each) for each in value]}
        if kind is dict:
            return {"dict": [[structure(k), structure(v)] for k, v in value.items()]}
        if isinstance(value, np.generic):
            return {"number": structure(np.asarray(value))}
        if kind is np.ndarray and value.dtype.kind in "biufc":
            arrays.append(unchanging(value))
            return {"array": len(arrays)}
        if kind is np.ndarray and value.dtype.type.__module__ == "ml_dtypes":
            # NumPy cannot write bfloat16: its bytes and the type's name are stored.
            bits = structure(value.view(f"u{value.dtype.itemsize}"))
            return {"bits": bits, "dtype": value.dtype.name}
        raise TypeError(
            "dict, list, tuple, str, number, None or NumPy array. Received: a "
            f"{kind.__name__}"
        )

    return [json.dumps(structure(value)), *arrays]


def unpack(packed: list) -> Any:
    """The value that was given to `pack`."""

    def value_of(structure):
        if isinstance(structure, list):
            return [value_of(each) for each in structure]
        match structure:
            case {"tuple": values}:
                return tuple(value_of(values))
            case {"dict": items}:
                return {value_of(key): value_of(each) for key, each in items}
            case {"number": array}:
                return value_of(array)[()]
            case {"array": number}:
                return packed[number]
            case {"bits": bits, "dtype": name}:
                return value_of(bits).view(name)
        return structure

    return value_of(json.loads(packed[0]))


def unchanging(array: np.ndarray) -> np.ndarray:
    """A copy of an array that cannot change; the array itself if it is such a copy."""
    if array.flags.writeable or not array.flags.owndata:
        array = array.copy()
        array.flags.writeable = False
    return array


def _write(path, packed):
    text, *arrays = packed
    json_bytes = np.frombuffer(text.encode(), np.uint8)
    with atomic_path(path) as temporary, open(temporary, "x+b") as file:
        file.write(FORMAT + bytes(65))
        np.savez(file, json_bytes, *arrays)
        file.seek(len(FORMAT) + 65)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(len(FORMAT))
        file.write(f"{digest}\n".encode())


def _read(path):
    """Reads a file whose digest is right; memory is used for nothing before that."""
    with open(path, "rb") as file:
        header = file.read(len(FORMAT) + 65)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if header != FORMAT + f"{digest}\n".encode():
            raise Damaged(
                f"{path} is damaged, or a snapshot of another version of keras_vanilla."
            )
        file.seek(len(header))
        with np.load(file, allow_pickle=False) as npz:
            json_bytes, *arrays = (npz[name] for name in npz.files)
    return unpack([json_bytes.tobytes().decode(), *arrays])
