"""Snapshots of a training on disk: each one file, whole or not there at all."""

import contextlib
import json
import re
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from keras_vanilla._atomic_write import atomic_write, remove_unfinished
from keras_vanilla._folder_lock import NAME as LOCK
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._types import PathLike

KEPT = 2  # should the last be damaged, there is the one before
NAME = re.compile(r"step-(\d+)\.npz")
FILES = (
    "step-*.npz",
    "step-*.npz.damaged",
    ".step-*.npz",  # of a write that was killed
    LOCK,
)
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


_held = {}  # the locks of this process, by folder


class Snapshots:
    """The snapshots in a folder, by the step each was taken after.

    A snapshot is NumPy's `.npz`, whose parts carry checksums, of the arrays and of
    "state", JSON in UTF-8 in which `{"array": name}` stands for an array. Its bytes
    are on disk before it gets its name, in one `os.replace`; the last two are kept.

    Args:
        folder: path; it is made with the first snapshot.
    """

    def __init__(self, folder: PathLike):
        self.folder = Path(folder)

    def hold(self) -> None:
        """Keeps other processes out, and removes what killed writes have left.

        A lock that this process holds already, such as that of a `fit` that raised an
        error, is taken anew.

        Raises:
            FolderInUse: if another process holds the folder.
            OSError: if the lock cannot be written.
        """
        self.release()
        lock = contextlib.ExitStack()
        lock.enter_context(folder_lock(self.folder))
        _held[self.folder.resolve()] = lock
        remove_unfinished(self.folder, NAME)

    def release(self) -> None:
        """Lets other processes in again; without `hold` it does nothing."""
        lock = _held.pop(self.folder.resolve(), None)
        if lock:
            lock.close()

    def save(self, step: int, state: dict[str, np.ndarray]) -> None:
        """Writes a snapshot, then drops all but the last two.

        Args:
            step: int. Number of updates made.
            state: nested dicts and lists of arrays, numbers, texts and None.
        Raises:
            OSError: if it cannot be written; those before it are as they were.
        """
        arrays = {}
        packed = json.dumps(_packed(state, arrays)).encode()
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path(step)) as file:
            np.savez(file, state=np.frombuffer(packed, np.uint8), **arrays)
        for path in self.paths()[:-KEPT]:
            path.unlink(missing_ok=True)

    def newest(self) -> Any:
        """The state of the last snapshot that can be read; None if there is none.

        A damaged one is reported in a warning and renamed, and the one before it is
        taken.

        Raises:
            ValueError: if there are snapshots and none can be read.
        """
        paths, damaged = self.paths(), []
        for path in reversed(paths):
            try:
                state = _read(path)
            except UNREADABLE as error:
                warnings.warn(f"{path} cannot be read ({error}).", stacklevel=2)
                damaged.append(path)
                continue
            for each in damaged:  # it must not be one of the last two
                with contextlib.suppress(OSError):
                    each.rename(f"{each}.damaged")
            return state
        if paths:
            raise ValueError(
                f"No snapshot in {self.folder} can be read: delete the folder to start "
                "again from the beginning."
            )
        return None

    def drop(self) -> None:
        """Deletes all of them, and the folder if nothing else is in it."""
        self.release()
        for pattern in FILES:
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not there, or not empty
            self.folder.rmdir()

    def paths(self) -> list[Path]:
        """The files, in the order of their steps."""
        if not self.folder.is_dir():
            return []
        return sorted(
            path for path in self.folder.iterdir() if NAME.fullmatch(path.name)
        )

    def last_step(self) -> int | None:
        """The step of the last one; None if there is none."""
        paths = self.paths()
        return int(NAME.fullmatch(paths[-1].name).group(1)) if paths else None

    def path(self, step: int) -> Path:
        """The file of a step."""
        return self.folder / f"step-{step:012d}.npz"


def _read(path):
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}  # checksums are compared
    return _unpacked(json.loads(arrays["state"].tobytes()), arrays)


def _packed(value, arrays):
    """The value with every array, and what JSON would change, put among `arrays`."""
    if isinstance(value, dict):
        return {"dict": {name: _packed(each, arrays) for name, each in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_packed(each, arrays) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        name = f"array-{len(arrays)}"
        # NumPy cannot write bfloat16: its bytes are kept, the type by name.
        arrays[name] = np.ascontiguousarray(value).view(_plain(value.dtype))
        return {"array": name, "dtype": value.dtype.name, "shape": value.shape}
    return value


def _unpacked(value, arrays):
    if isinstance(value, list):
        return [_unpacked(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    if "dict" in value:
        return {name: _unpacked(each, arrays) for name, each in value["dict"].items()}
    array = arrays[value["array"]].view(_dtype(value["dtype"]))
    return array.reshape(value["shape"])[()]  # a scalar, if it was one


def _plain(dtype):
    return dtype if dtype.kind in "biufc" else np.dtype(f"u{dtype.itemsize}")


def _dtype(name):
    import ml_dtypes  # Keras brings it; it names bfloat16 for NumPy

    return np.dtype(getattr(ml_dtypes, name, name))
