"""The folder of one training: its files, its record and its lock."""

import contextlib
import json
import os
import re
import tempfile
import warnings
from collections.abc import Collection
from pathlib import Path

from keras_vanilla._atomic_write import atomic_write_text, remove_unfinished
from keras_vanilla._folder_lock import NAME as LOCK
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._types import PathLike
from keras_vanilla.distribution.replicas import replicas_in_force
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training.config import TrainingConfig
from keras_vanilla.training.resume.identity import unlike
from keras_vanilla.training.resume.snapshots import FILES as SNAPSHOT_FILES
from keras_vanilla.training.resume.snapshots import Snapshots, folder_is_gone
from keras_vanilla.translation.translator import Translator

RECORD = "run.json"
RECORDED = {"finished": bool, "settings": dict, "files": list}
# What a training writes besides `translator.keras`. The record lists these patterns
# before the first file is written, and nothing else is ever deleted.
FILES = (
    "last.keras",
    "best.keras",
    "results.json",
    "history.csv",
    "logs/train/events.out.tfevents.*",
    "logs/validation/events.out.tfevents.*",
    *(f"snapshots/{name}" for name in SNAPSHOT_FILES),
)
# The steps of a warm-up that was shortened: they follow from the other settings when a
# training begins, and stay.
SHORT_WARMUP = "short_warmup_steps"
WRITTEN_WHOLE = re.compile(r"(last|best|translator)\.keras|(run|results)\.json")
ON_WINDOWS = os.name == "nt"


class RunFolder:
    """The folder that one training writes into, held while it is open.

    Inside `with`, a lock keeps other processes out. A folder is refused if it holds
    anything but a training that can be resumed, or with `overwrite` a finished one. Of
    several processes that train one model the first writes here, and `output` of the
    others is a temporary folder.

    Args:
        path: path of the folder; it is made if it does not exist.
        overwrite: bool. Replace another training that is there.
    Raises:
        FileExistsError: on entering, if the folder is refused, also if its training is
            of an earlier version.
        FolderInUse: on entering, if another process trains there.
        OSError: on entering, if it cannot be written; on leaving, if an error of the
            disk comes from the folder having been renamed or removed.
        ValueError: on entering, if its record is damaged.
    """

    def __init__(self, path: PathLike, overwrite: bool = False):
        self.path, self.overwrite = Path(path), overwrite
        self.output, self.is_writer = self.path, True
        self.snapshots = Snapshots(self.path / "snapshots")

    def __enter__(self) -> "RunFolder":
        self._refuse_other_contents()
        self.is_writer = replicas_in_force().first == 0
        with contextlib.ExitStack() as stack:
            if self.is_writer:
                new = [p for p in (self.path, *self.path.parents) if not p.exists()]
                if ON_WINDOWS:  # which removes no file that is open
                    stack.callback(self._remove_if_unused, new)
                stack.enter_context(folder_lock(self.path))
                if not ON_WINDOWS:  # where only the lock's owner may remove it
                    stack.callback(self._remove_if_unused, new)
                self._refuse_other_contents()  # another process may have been faster
                remove_unfinished(self.path, WRITTEN_WHOLE)
            else:
                temporary = stack.enter_context(tempfile.TemporaryDirectory())
                self.output = Path(temporary)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind, error, traceback):
        is_gone = not self.path.is_dir()
        self._stack.close()  # which removes a folder that was not used
        if is_gone and isinstance(error, OSError):
            raise folder_is_gone(self.path) from error

    @property
    def last_path(self) -> Path:
        """The translator after the last epoch."""
        return self.output / "last.keras"

    @property
    def best_path(self) -> Path:
        """The translator after the best epoch."""
        return self.output / "best.keras"

    @property
    def translator_path(self) -> Path:
        """The translator to use."""
        return self.output / "translator.keras"

    @property
    def results_path(self) -> Path:
        """What the training has come to."""
        return self.output / "results.json"

    def saved(self, path: Path) -> Path:
        """Where a file of this training is, which an earlier process may have saved."""
        return path if path.exists() else self.path / path.name

    def refuse_start(self, path: PathLike) -> None:
        """Refuses to start from a file that this training writes over.

        Raises:
            ValueError: if `path` is such a file.
        """
        changing = [self.path / name for name in ("last.keras", "best.keras")]
        if Path(path).resolve() in [each.resolve() for each in changing]:
            raise ValueError(
                f"{path} would be overwritten by this training: copy it first, or "
                "choose another output folder."
            )

    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the unfinished training to resume; None if there is none."""
        record = self._read()
        if self.overwrite or not record or record["finished"]:
            return None
        saved = self.last_saved() if self.snapshots.paths() else None
        return saved and saved.tokenizer

    def last_saved(self) -> Translator | None:
        """The translator of the last epoch, or else the best; None if both are lost."""
        return self.load(self.last_path) or self.load(self.best_path)

    def load(self, path: Path) -> Translator | None:
        """A translator that this training saved; if it is lost, a warning and None."""
        try:
            return Translator.load(self.saved(path))
        except (OSError, ValueError) as error:
            warnings.warn(f"The training continues without it: {error}", stacklevel=2)
            return None

    def resumes(self, settings: dict, allow_changed: Collection[str] = ()) -> bool:
        """Whether the training to resume there is this one.

        Args:
            settings: dict of all that decides the result, as JSON can hold it.
            allow_changed: names of what may differ, of those in `CHANGEABLE`.
        Raises:
            FileExistsError: if an unfinished training has other settings, and
                `overwrite` is False.
        """
        record = self._read()
        if record is None or record["finished"]:
            return False
        before, now = _complete(record["settings"]), _complete(settings)
        before.pop(SHORT_WARMUP, None)
        differing = unlike(before, now, allow_changed)
        if differing and not self.overwrite:
            raise FileExistsError(
                f"{self.path} holds an unfinished training with other settings: "
                f"{differing} Nothing was written."
            )
        return not differing and bool(self.snapshots.paths())

    def settings(self) -> dict:
        """The settings in the record of the training that is there."""
        return self._read()["settings"]

    def begin(self, settings: dict, translator: Translator) -> None:
        """Starts a training: deletes the previous one, then writes record and model.

        Args:
            settings: dict, as for `resumes`.
            translator: Translator, with its initial weights.
        """
        if self.is_writer:
            self.delete_previous_run()
            self._write(settings, finished=False)
        translator.save(self.last_path)

    def resume(self, settings: dict) -> None:
        """Records the settings that the training continues with.

        Args:
            settings: dict, as for `resumes`.
        """
        if self.is_writer:
            self._write(settings, finished=False)

    def delete_previous_run(self) -> None:
        """Deletes the files of the training in the record, and no others.

        Its `translator.keras` stays until the new one replaces it.
        """
        record = self._read()
        if record is not None:
            self._delete([each for each in record["files"] if each in FILES])

    def finish(self) -> None:
        """Records that everything is written; snapshots are deleted."""
        if self.is_writer:
            self._write(self._read()["settings"], finished=True)
            self._delete([each for each in FILES if each.startswith("snapshots/")])

    def _refuse_other_contents(self):
        record = self._read()
        if record is None and self._has_foreign_files():
            raise FileExistsError(
                f"{self.path} exists already and is not the folder of a training; "
                "nothing was written."
            )
        if record is not None and record["finished"] and not self.overwrite:
            raise FileExistsError(
                f"{self.path} exists already: its training is finished; nothing was "
                "written. To train further, start from its translator.keras, with "
                "another output folder."
            )

    def _has_foreign_files(self):
        if not self.path.is_dir():
            return self.path.exists()
        # Before there is a record, there are only a lock and temporary files.
        return any(not each.name.startswith(".") for each in self.path.iterdir())

    def _remove_if_unused(self, new_folders):
        """Leaves no empty folder behind when nothing was written."""
        if new_folders and not (self.path / RECORD).exists():
            with contextlib.suppress(OSError):
                (self.path / LOCK).unlink()
                for folder in new_folders:
                    folder.rmdir()

    def _delete(self, patterns):
        for pattern in patterns:
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        for folder in ("snapshots", "logs/train", "logs/validation", "logs"):
            with contextlib.suppress(OSError):  # not there, or not empty
                (self.path / folder).rmdir()

    def _read(self):
        path = self.path / RECORD
        try:
            record = json.loads(path.read_text())
            if isinstance(record, dict) and "asked" in record:
                raise FileExistsError(
                    f"{self.path} exists already: its training is of an earlier "
                    "version of keras_vanilla; nothing was written."
                )
            for name, kind in RECORDED.items():
                if not isinstance(record[name], kind):
                    raise ValueError(f"{name!r} is {record[name]!r}")
            return {name: record[name] for name in RECORDED}
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is damaged, or not the record of a training: {error}. Choose "
                "another folder, or delete this one."
            ) from None

    def _write(self, settings, finished):
        record = {"finished": finished, "settings": settings, "files": FILES}
        atomic_write_text(self.path / RECORD, json.dumps(record, indent=2) + "\n")


def _complete(settings):
    """Settings as JSON has them; one that is missing has its default."""
    return json.loads(json.dumps({**TrainingConfig().to_dict(), **settings}))
