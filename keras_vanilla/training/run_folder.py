"""The output folder of a training run: files, record and lock."""

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
# Files written besides `translator.keras`. The record lists these patterns before the
# first file is written, and nothing else is ever deleted.
FILES = (
    "last.keras",
    "best.keras",
    "results.json",
    "history.csv",
    "logs/train/events.out.tfevents.*",
    "logs/validation/events.out.tfevents.*",
    *(f"snapshots/{name}" for name in SNAPSHOT_FILES),
)
# The steps of a shortened warm-up, which are computed from the other settings at the
# start of a run and then kept.
SHORT_WARMUP = "short_warmup_steps"
WRITTEN_WHOLE = re.compile(r"(last|best|translator)\.keras|(run|results)\.json")
ON_WINDOWS = os.name == "nt"


class RunFolder:
    """Context manager for the output folder of one training run.

    Inside `with`, a lock keeps other processes out. A folder is refused unless it is
    empty or holds a run that can be resumed, or, with `overwrite`, a finished one. If
    several processes train one model, the first writes here, and `output` of the others
    is a temporary folder.

    Args:
        path: path of the folder; it is created if it does not exist.
        overwrite: bool. Replace another run in the folder.
    Raises:
        FileExistsError: on entering, if the folder is refused, or its run was started
            by an earlier version.
        FolderInUse: on entering, if another process trains in it.
        OSError: on entering, if it cannot be written; on leaving, if a disk error was
            caused by renaming or removing the folder.
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
                if ON_WINDOWS:  # which cannot remove open files
                    stack.callback(self._remove_if_unused, new)
                stack.enter_context(folder_lock(self.path))
                if not ON_WINDOWS:  # elsewhere, only the lock's owner may remove it
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
        self._stack.close()  # removes a folder that was not used
        if is_gone and isinstance(error, OSError):
            raise folder_is_gone(self.path) from error

    @property
    def last_path(self) -> Path:
        """The path of the translator after the last epoch."""
        return self.output / "last.keras"

    @property
    def best_path(self) -> Path:
        """The path of the translator after the best epoch."""
        return self.output / "best.keras"

    @property
    def translator_path(self) -> Path:
        """The path of the final translator."""
        return self.output / "translator.keras"

    @property
    def results_path(self) -> Path:
        """The path of the results."""
        return self.output / "results.json"

    def saved(self, path: Path) -> Path:
        """The path of a file of this run, which an earlier process may have saved."""
        return path if path.exists() else self.path / path.name

    def refuse_start(self, path: PathLike) -> None:
        """Refuses to start from a file that this run overwrites.

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
        """The tokenizer of the unfinished run to resume; None if there is none."""
        record = self._read()
        if self.overwrite or not record or record["finished"]:
            return None
        saved = self.last_saved() if self.snapshots.paths() else None
        return saved and saved.tokenizer

    def last_saved(self) -> Translator | None:
        """The translator of the last epoch, or else the best; None if both are lost."""
        return self.load(self.last_path) or self.load(self.best_path)

    def load(self, path: Path) -> Translator | None:
        """A translator saved by this run; None, with a warning, if it is lost."""
        try:
            return Translator.load(self.saved(path))
        except (OSError, ValueError) as error:
            warnings.warn(f"The training continues without it: {error}", stacklevel=2)
            return None

    def resumes(self, settings: dict, allow_changed: Collection[str] = ()) -> bool:
        """Tests if the unfinished run in the folder can be resumed with these settings.

        Args:
            settings: dict of all that determines the result, as JSON values.
            allow_changed: names in `CHANGEABLE` of settings that may differ.
        Raises:
            FileExistsError: if an unfinished run has other settings, and `overwrite` is
                False.
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
        """The settings in the record of the folder."""
        return self._read()["settings"]

    def begin(self, settings: dict, translator: Translator) -> None:
        """Starts a run: deletes the previous one, then writes record and model.

        Args:
            settings: dict, as for `resumes`.
            translator: Translator, with its initial weights.
        """
        if self.is_writer:
            self.delete_previous_run()
            self._write(settings, finished=False)
        translator.save(self.last_path)

    def resume(self, settings: dict) -> None:
        """Records the settings with which the run continues.

        Args:
            settings: dict, as for `resumes`.
        """
        if self.is_writer:
            self._write(settings, finished=False)

    def delete_previous_run(self) -> None:
        """Deletes only the files of the run in the record.

        `translator.keras` is kept until the new one replaces it.
        """
        record = self._read()
        if record is not None:
            self._delete([each for each in record["files"] if each in FILES])

    def finish(self) -> None:
        """Records that the run is finished, and deletes the snapshots."""
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
        # Without a record, only a lock and temporary files may be there.
        return any(not each.name.startswith(".") for each in self.path.iterdir())

    def _remove_if_unused(self, new_folders):
        """Removes new folders if nothing was written."""
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
            with contextlib.suppress(OSError):  # missing, or not empty
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
    """Settings as JSON values, with defaults for missing ones."""
    return json.loads(json.dumps({**TrainingConfig().to_dict(), **settings}))
