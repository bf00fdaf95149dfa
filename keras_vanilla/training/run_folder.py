"""The output folder of a training run: files, record and lock."""

import contextlib
import json
import re
import tempfile
import warnings
from collections.abc import Collection
from pathlib import Path

from keras_vanilla._atomic_write import remove_unfinished
from keras_vanilla._folder_lock import NAME as LOCK
from keras_vanilla._folder_lock import folder_lock
from keras_vanilla._record import read_record, write_record
from keras_vanilla._types import PathLike
from keras_vanilla.distribution.replicas import replicas_in_force
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.training.resume.identity import unlike
from keras_vanilla.training.resume.snapshots import FILES as SNAPSHOT_FILES
from keras_vanilla.training.resume.snapshots import Snapshots
from keras_vanilla.translation.translator import Translator

RECORD = "run.json"
LAST, BEST, FINAL = "last.keras", "best.keras", "translator.keras"
RESULTS = "results.json"
# Files written besides `translator.keras`. The record lists these patterns before the
# first file is written, and nothing else is ever deleted.
FILES = (
    LAST,
    BEST,
    RESULTS,
    "history.csv",
    "logs/train/events.out.tfevents.*",
    "logs/validation/events.out.tfevents.*",
    *(f"snapshots/{name}" for name in SNAPSHOT_FILES),
)
# The steps of a shortened warm-up, which are computed from the other settings at the
# start of a run and then kept.
SHORT_WARMUP = "short_warmup_steps"
WRITTEN_WHOLE = re.compile(r"(last|best|translator)\.keras|(run|results)\.json")


class RunFolder:
    """Context manager for the output folder of one training run.

    Inside `with`, a lock keeps other processes out. If several processes train one
    model, the first writes here, and `output` of the others is a temporary folder.

    Args:
        path: path of the folder; it is created if it does not exist.
        overwrite: bool. Replace another run in the folder.
    Raises:
        FileExistsError: on entering, if `step_to_resume` refuses the folder.
        FolderInUse: on entering, if another process trains in it.
        OSError: on entering, if it cannot be written.
        ValueError: on entering, if its record is damaged or of another version.
    """

    def __init__(self, path: PathLike, overwrite: bool = False):
        self.path, self.overwrite = Path(path), overwrite
        self.output, self.is_writer = self.path, True
        self.snapshots = Snapshots(self.path / "snapshots")

    def __enter__(self) -> "RunFolder":
        self.step_to_resume()
        self.is_writer = replicas_in_force().first == 0
        with contextlib.ExitStack() as stack:
            if self.is_writer:
                new = [p for p in (self.path, *self.path.parents) if not p.exists()]
                stack.enter_context(folder_lock(self.path))
                stack.callback(self._remove_if_unused, new)  # by the lock's owner
                self.step_to_resume()  # another process may have been faster
                remove_unfinished(self.path, WRITTEN_WHOLE)
            else:
                temporary = stack.enter_context(tempfile.TemporaryDirectory())
                self.output = Path(temporary)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.close()

    def step_to_resume(
        self, settings: dict | None = None, allow_changed: Collection[str] = ()
    ) -> int | None:
        """Decides whether a training in this folder starts, resumes or is refused.

        Args:
            settings: dict of all that determines the result, as JSON values; None if
                it is not known yet, and any unfinished run can be resumed.
            allow_changed: names in `CHANGEABLE` of settings that may differ.
        Returns:
            The step of the snapshot to resume from. None starts a training: the folder
            is new, has no snapshot yet, or is to be overwritten.
        Raises:
            FileExistsError: if the folder holds something else, a finished run, or one
                with other settings; with `overwrite`, only for something else.
        """
        record = self._read()
        if record is None:
            # Without a record, only a lock and temporary files may be there.
            if any(not each.name.startswith(".") for each in self.path.glob("*")):
                raise FileExistsError(
                    f"{self.path} exists already and is not the folder of a training; "
                    "nothing was written."
                )
            return None
        if self.overwrite:
            return None
        if record["finished"]:
            raise FileExistsError(
                f"{self.path} exists already: its training is finished; nothing was "
                "written. To train further, start from its translator.keras, with "
                "another output folder."
            )
        before = {**record["settings"]}
        before.pop(SHORT_WARMUP, None)
        now = before if settings is None else json.loads(json.dumps(settings))
        if differing := unlike(before, now, allow_changed):
            raise FileExistsError(
                f"{self.path} holds an unfinished training with other settings: "
                f"{differing} Nothing was written."
            )
        return self.snapshots.last_step()

    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the run to resume; None if there is none, or it is lost."""
        is_resumed = self.step_to_resume() is not None
        saved = self.load(LAST) if is_resumed else None
        return saved and saved.tokenizer

    def load(self, name: str) -> Translator | None:
        """A translator saved by this run; None, with a warning, if it is lost."""
        path = self.output / name
        if not path.exists():  # an earlier process may have saved it
            path = self.path / name
        try:
            return Translator.load(path)
        except (OSError, ValueError) as error:
            warnings.warn(f"The training continues without it: {error}", stacklevel=2)
            return None

    def refuse_start(self, path: PathLike) -> None:
        """Refuses to start from a file that this run overwrites.

        Raises:
            ValueError: if `path` is such a file.
        """
        changing = [(self.path / name).resolve() for name in (LAST, BEST)]
        if Path(path).resolve() in changing:
            raise ValueError(
                f"{path} would be overwritten by this training: copy it first, or "
                "choose another output folder."
            )

    def settings(self) -> dict:
        """The settings in the record of the folder."""
        return self._read()["settings"]

    def begin(self, settings: dict, translator: Translator) -> None:
        """Starts a run: deletes the files of the previous one, then writes its own.

        Only files in the record of the previous run are deleted. `translator.keras` is
        kept until the new one replaces it.

        Args:
            settings: dict, as for `step_to_resume`.
            translator: Translator, with its initial weights.
        """
        if self.is_writer:
            if record := self._read():
                self._delete([each for each in record["files"] if each in FILES])
            self.record(settings)
        translator.save(self.output / LAST)

    def record(self, settings: dict, finished: bool = False) -> None:
        """Records the settings with which the run continues, or has finished."""
        if self.is_writer:
            record = {"finished": finished, "settings": settings, "files": FILES}
            write_record(self.path / RECORD, record)

    def finish(self) -> None:
        """Records that the run is finished, and deletes the snapshots."""
        if self.is_writer:
            self.record(self.settings(), finished=True)
            self._delete([each for each in FILES if each.startswith("snapshots/")])

    def _remove_if_unused(self, new_folders):
        """Removes the folders that were made for a training that was refused."""
        if new_folders and not (self.path / RECORD).exists():
            with contextlib.suppress(OSError):  # Windows removes no open file
                (self.path / LOCK).unlink()
                for folder in new_folders:
                    folder.rmdir()

    def _delete(self, patterns):
        # Snapshots first: without them, no training resumes.
        for pattern in reversed(patterns):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        for folder in ("snapshots", "logs/train", "logs/validation", "logs"):
            with contextlib.suppress(OSError):  # missing, or not empty
                (self.path / folder).rmdir()

    def _read(self):
        try:
            return read_record(self.path / RECORD)
        except (FileNotFoundError, NotADirectoryError):
            return None
