import contextlib
import json
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest

from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla.training import run_folder
from keras_vanilla.training.resume.snapshots import SeparateArrays
from keras_vanilla.training.run_folder import RunFolder

WRONG_TYPE = '{"finished": false, "settings": [], "files": []}'
SETTINGS = {"epochs": 3, "dropout": 0.1, "corpus": "ab12", "preset": None}


class Model:
    """Stands for a translator, of which a folder needs only `save`."""

    def save(self, path):
        path.write_bytes(b"weights")


def begun(path, settings=SETTINGS, step=4):
    """The folder of a training as it is after a kill."""
    with RunFolder(path) as folder:
        assert not folder.resumes(settings)
        folder.begin(settings, Model())
        with folder.snapshots.writing():
            folder.snapshots.save(step, {})


def finished(path):
    begun(path)
    with RunFolder(path) as folder:
        folder.finish()


def names_in(path):
    return {each.name for each in path.iterdir() if not each.name.startswith(".")}


def test_a_new_folder_and_an_empty_one_begin(tmp_path):
    for path in (tmp_path, tmp_path / "new" / "folder"):
        with RunFolder(path) as folder:
            assert not folder.resumes(SETTINGS)


def test_nothing_is_left_of_a_folder_that_was_not_used(tmp_path):
    with RunFolder(tmp_path / "new" / "folder"):
        assert (tmp_path / "new" / "folder").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_the_same_training_resumes(tmp_path):
    begun(tmp_path)
    for overwrite in (False, True):
        with RunFolder(tmp_path, overwrite) as folder:
            assert folder.resumes(dict(SETTINGS))


def test_a_setting_that_a_record_does_not_have_yet_was_its_default(tmp_path):
    begun(tmp_path)
    with RunFolder(tmp_path) as folder:
        assert folder.resumes({**SETTINGS, "drop_duplicates": False, "patience": None})
        with pytest.raises(FileExistsError, match="drop_duplicates was False and is T"):
            folder.resumes({**SETTINGS, "drop_duplicates": True})


def test_a_training_killed_before_its_first_snapshot_begins_again(tmp_path):
    begun(tmp_path)
    with RunFolder(tmp_path) as folder:
        shutil.rmtree(folder.snapshots.folder)
        assert not folder.resumes(SETTINGS)


def test_a_training_killed_before_its_record_begins_again(tmp_path):
    (tmp_path / ".run.12ab.json").write_text('{"fin')
    with RunFolder(tmp_path) as folder:
        assert not folder.resumes(SETTINGS)


def test_another_training_is_refused_with_what_is_different(tmp_path):
    begun(tmp_path)
    other = {**SETTINGS, "epochs": 5, "validation": "cd34"}
    expected = "settings: epochs was 3 and is 5; validation was None and is 'cd34'"
    with RunFolder(tmp_path) as folder:
        with pytest.raises(FileExistsError, match=expected):
            folder.resumes(other)
        assert folder.snapshots.last_step() == 4


def test_another_training_with_overwrite_begins_without_the_snapshots(tmp_path):
    begun(tmp_path)
    other = {**SETTINGS, "epochs": 5}
    with RunFolder(tmp_path, overwrite=True) as folder:
        assert not folder.resumes(other)
        assert folder.snapshots.last_step() == 4  # nothing is lost before it begins
        folder.begin(other, Model())
        assert folder.snapshots.last_step() is None
    assert json.loads((tmp_path / "run.json").read_text())["settings"]["epochs"] == 5


def test_a_finished_training_is_refused(tmp_path):
    finished(tmp_path)
    with pytest.raises(FileExistsError, match="is fin.* start from its tr"):
        RunFolder(tmp_path).__enter__()
    with RunFolder(tmp_path, overwrite=True) as folder:
        assert folder.snapshots.last_step() is None
        assert not folder.resumes(SETTINGS)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["mine.txt", "translator.keras", "results.json"])
def test_a_folder_of_something_else_is_refused_untouched(tmp_path, name, overwrite):
    (tmp_path / name).write_text("kept")
    with pytest.raises(FileExistsError, match="is not the folder of a training"):
        RunFolder(tmp_path, overwrite).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(FileExistsError, match="file exists already"):
        RunFolder(tmp_path / "file").__enter__()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(OSError, match="file"):
        RunFolder(tmp_path / "file" / "folder").__enter__()


@pytest.mark.parametrize("content", ["{", "[1]", '{"finished": true}', WRONG_TYPE])
def test_a_damaged_record_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="run.json is damaged, or not the record"):
            RunFolder(tmp_path, overwrite).__enter__()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_record_of_an_earlier_version_is_refused_untouched(tmp_path, overwrite):
    (tmp_path / "run.json").write_text('{"finished": false, "asked": {}}')
    with pytest.raises(FileExistsError, match="exists already: .* earlier version"):
        RunFolder(tmp_path, overwrite).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_what_another_process_wrote_before_the_lock_was_held_is_refused(
    tmp_path, monkeypatch
):
    @contextlib.contextmanager
    def slow_lock(path):
        path.mkdir()
        record = {"finished": True, "settings": {}, "files": []}
        (path / "run.json").write_text(json.dumps(record))
        yield

    monkeypatch.setattr(run_folder, "folder_lock", slow_lock)
    with pytest.raises(FileExistsError, match="its training is finished"):
        RunFolder(tmp_path / "run").__enter__()
    assert (tmp_path / "run" / "run.json").exists()


def test_on_windows_the_lock_file_is_removed_after_the_lock(tmp_path, monkeypatch):
    events, remove = [], RunFolder._remove_if_unused

    @contextlib.contextmanager
    def recorded(path):
        with folder_lock(path):
            yield
        events.append("released")

    def removed(self, new):
        events.append("removed")
        remove(self, new)

    monkeypatch.setattr(run_folder, "ON_WINDOWS", True)
    monkeypatch.setattr(run_folder, "folder_lock", recorded)
    monkeypatch.setattr(RunFolder, "_remove_if_unused", removed)
    with RunFolder(tmp_path / "run"):
        pass
    assert events == ["released", "removed"] and list(tmp_path.iterdir()) == []


def test_only_what_killed_writes_have_left_is_removed(tmp_path):
    begun(tmp_path)
    ours = [f".{name}.0123456789ab" for name in ("last", "best", "translator")]
    ours = [*(f"{name}.keras" for name in ours), ".run.0123456789ab.json"]
    theirs = [".last.keras", ".best.0123456789.keras", ".mine.0123456789ab.keras"]
    for name in [*ours, *theirs]:
        (tmp_path / name).write_text("x")
    with RunFolder(tmp_path):
        assert not any((tmp_path / name).exists() for name in ours)
        assert all((tmp_path / name).exists() for name in theirs)


def test_settings_that_may_differ_are_allowed_by_name(tmp_path):
    begun(tmp_path)
    other = {**SETTINGS, "epochs": 5, "warmup_steps": 7}
    with RunFolder(tmp_path) as folder:
        with pytest.raises(FileExistsError, match=r"allow_changed=\['epochs', 'optim"):
            folder.resumes(other)
        message = r"settings: warmup_steps was None.*=\['epochs', 'optimizer'\]"
        with pytest.raises(FileExistsError, match=message):
            folder.resumes(other, ["epochs"])
        assert folder.resumes(other, ["epochs", "optimizer"])
        folder.resume(other)
        assert folder.resumes(other)
        assert folder.snapshots.last_step() == 4


@pytest.mark.full
@pytest.mark.parametrize("lost", [[], ["last"], ["last", "best"]])
def test_a_lost_translator_is_replaced_by_the_next_one(tmp_path, trained_file, lost):
    begun(tmp_path)
    for name in ("last", "best"):
        shutil.copy(trained_file, tmp_path / f"{name}.keras")
    for name in lost:
        os.truncate(tmp_path / f"{name}.keras", 1000)
    with RunFolder(tmp_path) as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert (folder.last_saved() is None) == (len(lost) == 2)
    texts = [str(each.message) for each in caught if "without it" in str(each.message)]
    assert len(texts) == len(lost)


def test_a_finished_run_leaves_nothing_of_its_snapshots(tmp_path):
    begun(tmp_path)
    with RunFolder(tmp_path) as folder:
        with folder.snapshots.writing():
            folder.snapshots.save(9, {"kept": SeparateArrays([np.zeros(3)])})
        folder.finish()
    assert not (tmp_path / "snapshots").exists()


def test_overwriting_deletes_the_previous_run_and_nothing_else(tmp_path):
    finished(tmp_path)
    log = "logs/train/events.out.tfevents.1"
    ours = ["best.keras", "results.json", "history.csv", log]
    theirs = ["logs/mine.txt", "snapshots/mine.npz", "notes.txt", "step-1.npz"]
    for name in [*ours, *theirs, "translator.keras"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    with RunFolder(tmp_path, overwrite=True) as folder:
        folder.begin(SETTINGS, Model())
    assert not any((tmp_path / name).exists() for name in ours)
    assert all((tmp_path / name).exists() for name in theirs)
    assert not (tmp_path / "logs" / "train").exists()
    # The translator in use stays until there is another.
    assert (tmp_path / "translator.keras").exists()


def test_a_record_cannot_name_files_elsewhere(tmp_path):
    finished(tmp_path / "run")
    (tmp_path / "mine.txt").write_text("kept")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    record["files"] = ["../mine.txt", "notes.txt"]
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    (tmp_path / "run" / "notes.txt").write_text("kept")
    with RunFolder(tmp_path / "run", overwrite=True) as folder:
        folder.delete_previous_run()
    assert (tmp_path / "mine.txt").exists()
    assert (tmp_path / "run" / "notes.txt").exists()


def test_a_second_training_in_the_folder_is_refused_with_the_first_ones_name(tmp_path):
    with RunFolder(tmp_path / "run") as folder:
        folder.begin(SETTINGS, Model())
        with pytest.raises(FolderInUse, match=r"in use by another process \(process "):
            RunFolder(tmp_path / "run").__enter__()
    with RunFolder(tmp_path / "run"):
        pass


@pytest.mark.full
def test_the_lock_of_a_killed_process_is_free(tmp_path):
    program = (
        "import os, signal; from keras_vanilla.training.run_folder import RunFolder; "
        f"RunFolder({str(tmp_path)!r}).__enter__(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    assert (tmp_path / ".lock").exists()
    with RunFolder(tmp_path):
        pass
