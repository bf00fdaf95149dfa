"""What the training in a folder is: to go on with it, and with no other."""

import hashlib
import json
import shutil
from pathlib import Path

import keras

from keras_vanilla._atomic_write import atomic_write_text
from keras_vanilla.training.resume.snapshots import Snapshots

NAME = "run.json"


class RunRecord:
    """`run.json` of a folder: what was asked of its training, and if it is finished.

    Args:
        folder: path of the training's folder.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.snapshots = Snapshots(self.folder / "snapshots")
        self._path = self.folder / NAME

    def refuse_finished(self, overwrite=False):
        """Refuses a folder that holds anything but a training to go on with.

        Raises:
            FileExistsError: if it does, and `overwrite` is False.
            ValueError: if its record is damaged.
        """
        if not overwrite and self.folder.exists() and not self._may_go_on():
            raise FileExistsError(f"{self.folder} exists already; nothing was written.")

    def goes_on(self, asked, overwrite=False):
        """Whether the training there is the one described, with a snapshot.

        Args:
            asked: dict of what decides the result, as JSON has it.
            overwrite: bool. Begin anew where there is another training.
        Raises:
            FileExistsError: if the folder holds another training or a finished one,
                and `overwrite` is False.
            ValueError: if its record is damaged, and `overwrite` is False.
        """
        self.refuse_finished(overwrite)
        try:
            found = self._read()
        except ValueError:
            if not overwrite:
                raise
            return False
        if not found or found["finished"]:
            return False
        others = _differences(found["asked"], asked)
        if others and not overwrite:
            raise FileExistsError(
                f"{self.folder} holds an unfinished training with other settings: "
                f"{'; '.join(others)}. Nothing was written."
            )
        return not others and bool(self.snapshots.paths())

    def begin(self, asked):
        """Writes what is begun, in the place of all but the translator there was."""
        self.snapshots.drop()  # or they could be taken for the new training's
        self._write(asked, finished=False)
        for name in ("results.json", "best.keras"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / "logs", ignore_errors=True)

    def finish(self):
        """Says that everything is written."""
        self._write(self._read()["asked"], finished=True)
        self.snapshots.drop()

    def _may_go_on(self):
        if not self.folder.is_dir():
            return False
        found = self._read()
        if found is None:  # killed before there was one
            return all(path.name.startswith(".") for path in self.folder.iterdir())
        return not found["finished"]

    def _read(self):
        try:
            found = json.loads(self._path.read_text())
            return {name: found[name] for name in ("finished", "asked")}
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self._path} is damaged, or not of a training: {error}"
            ) from None

    def _write(self, asked, finished):
        self.folder.mkdir(parents=True, exist_ok=True)
        record = {"finished": finished, "asked": asked}
        atomic_write_text(self._path, json.dumps(record, indent=2) + "\n")


def digest_of(translator):
    """A digest of what a translator is: its configuration, pieces and weights."""
    config = translator.model.get_config()
    del config["name"]  # Keras counts the models of a process
    digest = hashlib.sha256(json.dumps(config).encode())
    digest.update(translator.tokenizer.digest.encode())
    for value in translator.model.get_weights():
        digest.update(keras.ops.convert_to_numpy(value).tobytes())
    return digest.hexdigest()


def _differences(then, now):
    """What is said of each setting that is not what it was."""
    then, now = json.loads(json.dumps(then)), json.loads(json.dumps(now))
    return [
        f"{name} was {then.get(name)!r} and is {now.get(name)!r}"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]
