"""Snapshot files, written atomically.

A snapshot is an `.npz` file whose parts have checksums: arrays, and "state", JSON in
UTF-8 that refers to them. What it holds is in `exact_resume.py`, `_Training._state_of`.
"""

import contextlib
import errno
import functools
import hashlib
import json
import re
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 (NumPy then knows the names of its types)
import numpy as np

from keras_vanilla._atomic_write import atomic_write, remove_unfinished
from keras_vanilla._checks import first_line
from keras_vanilla._folder_lock import NAME as LOCK
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._types import PathLike

KEPT = 2  # if the last snapshot is damaged, the previous one is used
NAME = re.compile(r"step-(\d+)\.npz")
WEIGHTS_NAME = re.compile(r"weights-[0-9a-f]{16}\.npz")
FILES = (
    "step-*.npz",
    "step-*.npz.damaged",
    "weights-*.npz",
    ".step-*.npz",  # left by an interrupted write
    ".weights-*.npz",
    LOCK,
)


class Damaged(ValueError):
    """A file is truncated or was changed."""


def folder_is_gone(folder: PathLike) -> FileNotFoundError:
    """The error for a folder that was renamed or removed during training."""
    return FileNotFoundError(
        f"{folder} is gone: it was renamed or removed while its training ran. Rename "
        "it back and start the same training again, which resumes from its last "
        "snapshot."
    )


class SeparateArrays(tuple):
    """Arrays that do not change, such as the weights after an epoch.

    If a callback returns them from `get_state`, they are written once to a separate
    file, instead of to every snapshot.

    Args:
        arrays: iterable of NumPy arrays. They must not be changed afterwards.
    """

    def __new__(cls, arrays: Iterable[np.ndarray]):
        return super().__new__(cls, arrays)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of types, shapes and values."""
        digest = hashlib.sha256()
        for array in self:
            digest.update(f"{array.dtype.name} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def __deepcopy__(self, memo: Any) -> "SeparateArrays":
        return self


class Snapshots:
    """The snapshots in a folder, named after their steps.

    The last two are kept. `SeparateArrays` are stored in separate files,
    `weights-*.npz`, which are kept as long as a snapshot refers to them.

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
            for names in (NAME, WEIGHTS_NAME):
                remove_unfinished(self.folder, names)
            try:
                yield
            finally:
                self.wait()

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Writes a snapshot, then deletes all but the last two.

        Args:
            step: int. Number of updates so far.
            state: nested dicts and lists of arrays, numbers, texts and None.
        Raises:
            OSError: if it cannot be written; previous snapshots are not changed.
        """
        _write(self.path(step), state)
        for path in self.paths()[:-KEPT]:
            path.unlink(missing_ok=True)
        self._delete_unused_weights()

    def save_in_background(self, step: int, state: dict[str, Any]) -> None:
        """Calls `save` in a thread; `wait` returns its error.

        Args:
            step: int. Number of updates so far.
            state: as for `save`; it must not change until it is written.
        """
        self._in_background = self._writer.submit(self.save, step, state)

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
                warnings.warn(f"{path} cannot be read ({error}).", stacklevel=2)
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
        return self._files(NAME)

    def last_step(self) -> int | None:
        """The step of the last snapshot; None if there is none."""
        paths = self.paths()
        return int(NAME.fullmatch(paths[-1].name).group(1)) if paths else None

    def path(self, step: int) -> Path:
        """The path of the snapshot of a step."""
        return self.folder / f"step-{step:012d}.npz"

    def _files(self, names):
        if not self.folder.is_dir():
            return []
        return sorted(p for p in self.folder.iterdir() if names.fullmatch(p.name))

    def _delete_unused_weights(self):
        used = set()
        for path in self.paths():
            try:
                with _opened(path) as file:
                    used |= set(json.loads(file["state"].tobytes())["files"])
            except (OSError, Damaged):
                return  # a damaged snapshot may refer to any file
        for path in self._files(WEIGHTS_NAME):
            if path.name not in used:
                path.unlink(missing_ok=True)


def _write(path, value):
    """Writes a file and syncs it to disk before it gets its final name."""
    arrays, files = {}, []

    def packed(value):
        """Moves arrays, and values that JSON would change, to `arrays`."""
        if isinstance(value, dict):
            return {"dict": {name: packed(each) for name, each in value.items()}}
        if isinstance(value, SeparateArrays):
            file = path.with_name(f"weights-{value.digest[:16]}.npz")
            if not file.exists():
                _write(file, list(value))
            files.append(file.name)
            return {"file": file.name, "digest": value.digest}
        if isinstance(value, (list, tuple)):
            return [packed(each) for each in value]
        if isinstance(value, (np.ndarray, np.generic)):
            name, kept = f"array-{len(arrays)}", value.dtype.kind in "biufc"
            # NumPy cannot write bfloat16: its bytes and the type's name are stored.
            bytes_type = value.dtype if kept else np.dtype(f"u{value.dtype.itemsize}")
            arrays[name] = np.ascontiguousarray(value).view(bytes_type)
            return {"array": name, "dtype": value.dtype.name, "shape": value.shape}
        return value

    state = json.dumps({"value": packed(value), "files": files}).encode()
    with atomic_write(path) as file:
        np.savez(file, state=np.frombuffer(state, np.uint8), **arrays)


def _read(path):
    """Reads what `_write` has written, with `SeparateArrays` from their own files.

    Checksums are compared first, so that a later memory error means a lack of memory,
    not a damaged shape.
    """
    with _opened(path) as file:
        if damaged := file.zip.testzip():
            raise Damaged(f"{damaged} does not match its checksum")
        arrays = {name: file[name] for name in file.files}

        def unpacked(value):
            if isinstance(value, list):
                return [unpacked(each) for each in value]
            if not isinstance(value, dict):
                return value
            if "dict" in value:
                return {name: unpacked(each) for name, each in value["dict"].items()}
            if "file" in value:
                return _separate_arrays(path.with_name(value["file"]), value["digest"])
            array = arrays[value["array"]].view(value["dtype"])
            return array.reshape(value["shape"])[()]  # scalars remain scalars

        return unpacked(json.loads(arrays["state"].tobytes())["value"])


@contextlib.contextmanager
def _opened(path):
    """Opens a file with NumPy; errors about its bytes are raised as `Damaged`."""
    try:
        with np.load(path, allow_pickle=False) as file:
            yield file
    except MemoryError:
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise Damaged("its index points to before the file") from error
    except Exception as error:  # damaged bytes can cause any
        raise Damaged(first_line(error)) from error


def _separate_arrays(path, digest):
    try:
        arrays = SeparateArrays(_read(path))
    except FileNotFoundError as error:
        raise Damaged(f"{path.name} is missing") from error
    except Damaged as error:
        raise Damaged(f"{path.name} is damaged: {error}") from error
    if arrays.digest != digest:
        raise Damaged(f"{path.name} holds other values")
    return arrays
