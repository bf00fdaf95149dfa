"""Snapshots of a training on disk: each one file, whole or not there at all."""

import contextlib
import re
import threading
import warnings
from pathlib import Path
from typing import Any

from keras_vanilla._atomic_write import remove_unfinished
from keras_vanilla._folder_lock import NAME as LOCK
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._types import PathLike
from keras_vanilla.training.resume.separate_arrays import SeparateArrays
from keras_vanilla.training.resume.snapshot_file import (
    Damaged,
    files_referred_to,
    read_file,
    write_file,
)

KEPT = 2  # should the last be damaged, there is the one before
NAME = re.compile(r"step-(\d+)\.npz")
WEIGHTS_NAME = re.compile(r"weights-[0-9a-f]{16}\.npz")
FILES = (
    "step-*.npz",
    "step-*.npz.damaged",
    "weights-*.npz",
    ".step-*.npz",  # of a write that was killed
    ".weights-*.npz",
    LOCK,
)

_held = {}  # the locks of this process, by folder
_writes = {}  # its last write in the background, by folder


class Snapshots:
    """The snapshots in a folder, by the step each was taken after.

    A snapshot is a file of `snapshot_file`. `SeparateArrays` in it are in files of
    their own, `weights-*.npz`, which stay as long as a snapshot refers to them. The
    last two snapshots are kept.

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
        for names in (NAME, WEIGHTS_NAME):
            remove_unfinished(self.folder, names)

    def release(self) -> None:
        """Lets other processes in again; without `hold` it does nothing."""
        self.wait()
        lock = _held.pop(self.folder.resolve(), None)
        if lock:
            lock.close()

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Writes a snapshot, then drops all but the last two.

        Args:
            step: int. Number of updates made.
            state: nested dicts and lists of arrays, numbers, texts and None.
        Raises:
            OSError: if it cannot be written; those before it are as they were.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self.path(step), state, self._file_of)
        for path in self._files(NAME)[:-KEPT]:
            path.unlink(missing_ok=True)
        self._delete_unused_weights()

    def save_in_background(self, step: int, state: dict[str, Any]) -> None:
        """`save` in a thread; `wait` returns its error.

        Args:
            step: int. Number of updates made.
            state: as for `save`; nobody may change it until it is written.
        """
        self.wait()
        _writes[self.folder.resolve()] = _Write(self.save, step, state)

    def wait(self) -> OSError | None:
        """Waits for the write in the background; the error that has stopped it."""
        folder = self.folder.resolve()
        write = _writes.get(folder)
        error = write.end() if write else None  # a signal may wait for it as well
        _writes.pop(folder, None)
        return error

    def newest(self) -> Any:
        """The state of the last snapshot that is not damaged; None if there is none.

        A damaged one is reported in a warning and renamed, and the one before it is
        taken.

        Raises:
            ValueError: if there are snapshots and all of them are damaged.
            OSError: if one cannot be read, which is no sign of damage.
        """
        paths, damaged = self.paths(), []
        for path in reversed(paths):
            try:
                state = read_file(path)
            except Damaged as error:
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
        write = _writes.get(self.folder.resolve())
        if write:
            write.join()
        return self._files(NAME)

    def last_step(self) -> int | None:
        """The step of the last one; None if there is none."""
        paths = self.paths()
        return int(NAME.fullmatch(paths[-1].name).group(1)) if paths else None

    def path(self, step: int) -> Path:
        """The file of a step."""
        return self.folder / f"step-{step:012d}.npz"

    def _files(self, names):
        if not self.folder.is_dir():
            return []
        return sorted(p for p in self.folder.iterdir() if names.fullmatch(p.name))

    def _file_of(self, arrays: SeparateArrays):
        """The name of their file, which is written unless it is there."""
        path = self.folder / f"weights-{arrays.digest[:16]}.npz"
        if not path.exists():
            write_file(path, list(arrays))
        return path.name

    def _delete_unused_weights(self):
        try:
            used = set().union(*map(files_referred_to, self._files(NAME)))
        except (OSError, Damaged):
            return  # nobody knows what a damaged one refers to
        for path in self._files(WEIGHTS_NAME):
            if path.name not in used:
                path.unlink(missing_ok=True)


class _Write(threading.Thread):
    """A write in the background."""

    def __init__(self, save, *arguments):
        super().__init__(name="snapshot")
        self._save, self._arguments, self._error = save, arguments, None
        self.start()

    def run(self):
        try:
            self._save(*self._arguments)
        except Exception as error:
            self._error = error

    def end(self):
        """Waits for the end; an error of the disk is returned, another one raised."""
        self.join()
        if self._error and not isinstance(self._error, OSError):
            raise self._error
        return self._error
