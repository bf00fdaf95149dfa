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
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 (NumPy then knows the names of its types)
import numpy as np

from keras_vanilla._atomic_write import atomic_path, remove_unfinished
from keras_vanilla._folder_lock import NAME as LOCK
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._types import PathLike

KEPT = 2  # if the last snapshot is damaged, the previous one is used
FORMAT = b"keras_vanilla snapshot 3\n"
NAME = re.compile(r"step-(\d+)\.npz")
FILES = ("step-*.npz", ".step-*.npz", LOCK)


class Damaged(ValueError):
    """A file is not what was written, or is of another version."""


class Snapshots:
    """The last two snapshots in a folder, named after their steps.

    Args:
        folder: path; `writing` creates it.
    """

    def __init__(self, folder: PathLike):
        self.folder = Path(folder)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Locks the folder, and removes the files of interrupted writes.

        Raises:
            FolderInUse: if another process writes to the folder.
            OSError: if the lock cannot be written.
        """
        with folder_lock(self.folder):
            remove_unfinished(self.folder, NAME)
            yield

    def save(self, step: int, packed: list) -> None:
        """Writes a snapshot, then deletes all but the last two.

        Args:
            step: int. Number of updates so far.
            packed: the result of `pack`.
        Raises:
            OSError: if it cannot be written; previous snapshots are not changed.
        """
        text, *arrays = packed
        json_bytes = np.frombuffer(text.encode(), np.uint8)
        with atomic_path(self.path(step)) as path, open(path, "x+b") as file:
            file.write(FORMAT + bytes(65))
            np.savez(file, json_bytes, *arrays)
            file.seek(len(FORMAT) + 65)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(len(FORMAT))
            file.write(f"{digest}\n".encode())
        for path in self._paths()[:-KEPT]:
            path.unlink(missing_ok=True)

    def newest(self) -> Any:
        """The state of the last snapshot that is not damaged; None if there is none.

        There is a warning for each snapshot that is damaged.

        Raises:
            ValueError: if there are snapshots and all of them are damaged.
            OSError: if a snapshot cannot be read, which does not mean it is damaged.
        """
        paths = self._paths()
        for path in reversed(paths):
            try:
                return _read(path)
            except Damaged as error:
                warnings.warn(str(error), stacklevel=2)
        if paths:
            raise ValueError(
                f"No snapshot in {self.folder} can be read: delete the folder to start "
                "again from the beginning."
            )
        return None

    def last_path(self) -> Path | None:
        """The path of the last snapshot; None if there is none."""
        return max(self._paths(), default=None)

    def last_step(self) -> int | None:
        """The step of the last snapshot; None if there is none."""
        path = self.last_path()
        return path and int(NAME.fullmatch(path.name).group(1))

    def path(self, step: int) -> Path:
        """The path of the snapshot of a step."""
        return self.folder / f"step-{step:012d}.npz"

    def _paths(self):
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(path for path in paths if NAME.fullmatch(path.name))


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
        if isinstance(value, np.generic) or kind is np.ndarray:
            of_numpy = value.dtype.kind in "biufc"
            if of_numpy or value.dtype.type.__module__ == "ml_dtypes":
                arrays.append(unchanging(np.asarray(value)))
                place = {"array": len(arrays), "dtype": value.dtype.name}
                return place if kind is np.ndarray else {"number": place}
        raise TypeError(
            "A snapshot, with the states of callbacks, can have dicts, lists, tuples, "
            f"strings, numbers, None and NumPy arrays. Received: a {kind.__name__}"
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
            case {"number": place}:
                return value_of(place)[()]
            case {"array": number, "dtype": name}:
                array = packed[number]  # NumPy reads the bytes of bfloat16 without name
                return array.view(name) if array.dtype.kind == "V" else array
        return structure

    return value_of(json.loads(packed[0]))


def unchanging(array: np.ndarray) -> np.ndarray:
    """A copy of an array that cannot change; the array itself if it is such a copy."""
    if array.flags.writeable or not array.flags.owndata:
        array = array.copy()
        array.flags.writeable = False
    return array


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
