import contextlib
import json
import os
import shutil

import pytest

from keras_vanilla._folder_lock import FolderInUse
from keras_vanilla._record import read_record, write_record
from keras_vanilla.training import run_folder
from keras_vanilla.training.resume.snapshots import pack
from keras_vanilla.training.run_folder import RunFolder

SETTINGS = {"epochs": 3, "dropout": 0.1, "corpus": "ab12", "freeze": ("encoder",)}
OTHER = {**SETTINGS, "epochs": 5, "warmup_steps": 7}


class Model:
    """Stands for a translator, of which a folder needs only `save`."""

    def save(self, path):
        path.write_bytes(b"weights")


def begun(path, step=4):
    """The folder of a training as it is after a kill."""
    with RunFolder(path) as folder:
        assert folder.step_to_resume(SETTINGS) is None
        folder.begin(SETTINGS, Model())
        if step is not None:
            with folder.snapshots.writing():
                folder.snapshots.save(step, pack({}))


def finished(path):
    begun(path)
    with RunFolder(path) as folder:
        folder.finish()


def foreign(path):
    path.mkdir()
    (path / "results.json").write_text("kept")


def only_temporary(path):
    path.mkdir()
    (path / ".run.0123456789ab.json").write_text('{"fin')


REFUSED = {
    "finished": "its training is finished",
    "foreign": "is not the folder of a training",
    "epochs": r"epochs was 3 and is 5; warmup_steps .*=\['epochs', 'optimizer'\]",
    "warm-up": r"settings: warmup_steps was None.*=\['epochs', 'optimizer'\]",
}


@pytest.mark.parametrize(
    ("before", "overwrite", "settings", "allowed", "decision"),
    [
        (None, False, SETTINGS, [], None),
        (only_temporary, False, SETTINGS, [], None),
        (lambda path: begun(path, step=None), False, SETTINGS, [], None),
        (begun, False, SETTINGS, [], 4),
        (begun, False, None, [], 4),  # the settings are not known yet
        (begun, True, SETTINGS, [], None),
        (begun, True, None, [], None),
        (begun, False, OTHER, [], "epochs"),
        (begun, False, OTHER, ["epochs"], "warm-up"),
        (begun, False, OTHER, ["epochs", "optimizer"], 4),
        (begun, True, OTHER, [], None),
        (finished, False, SETTINGS, [], "finished"),
        (finished, True, SETTINGS, [], None),
        (foreign, False, SETTINGS, [], "foreign"),
        (foreign, True, SETTINGS, [], "foreign"),
    ],
)
def test_folder_starts_resumes_or_refuses(
    tmp_path, before, overwrite, settings, allowed, decision
):
    path = tmp_path / "run"
    if before:
        before(path)
    there = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    if isinstance(decision, str):
        with pytest.raises(FileExistsError, match=REFUSED[decision]):
            with RunFolder(path, overwrite) as folder:
                folder.step_to_resume(settings, allowed)
    else:
        with RunFolder(path, overwrite) as folder:
            assert folder.step_to_resume(settings, allowed) == decision
    after = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    unfinished = {p for p in there if p.name.startswith(".run")}
    kept = there.keys() - unfinished if before is only_temporary else there.keys()
    assert {p for p in after if p.name != ".lock"} == {
        p for p in kept if p.name != ".lock"
    }


def test_overwriting_deletes_only_previous_run(tmp_path):
    for before in (begun, finished):
        path = tmp_path / before.__name__
        before(path)
        log = "logs/train/events.out.tfevents.1"
        ours = ["best.keras", "results.json", "history.csv", log]
        theirs = ["logs/mine.txt", "snapshots/mine.npz", "notes.txt", "step-1.npz"]
        for name in [*ours, *theirs, "translator.keras"]:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text("x")
        with RunFolder(path, overwrite=True) as folder:
            folder.begin(OTHER, Model())
            assert folder.snapshots.last_step() is None
            assert folder.settings() == json.loads(json.dumps(OTHER))
        assert not any((path / name).exists() for name in ours)
        assert all((path / name).exists() for name in theirs)
        assert not (path / "logs" / "train").exists()
        # The translator in use stays until there is another.
        assert (path / "translator.keras").exists()


def test_record_cannot_name_other_files(tmp_path):
    finished(tmp_path / "run")
    record = read_record(tmp_path / "run" / "run.json")
    record["files"] = ["../mine.txt", "notes.txt"]
    write_record(tmp_path / "run" / "run.json", record)
    kept = [tmp_path / "mine.txt", tmp_path / "run" / "notes.txt"]
    for path in kept:
        path.write_text("kept")
    with RunFolder(tmp_path / "run", overwrite=True) as folder:
        folder.begin(SETTINGS, Model())
    assert all(path.exists() for path in kept)


def test_finished_run_has_no_snapshots(tmp_path):
    finished(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {".lock", "last.keras", "run.json"}
    assert read_record(tmp_path / "run.json")["finished"] is True


@pytest.mark.parametrize("content", ["{", '{"finished": false, "settings": {}}'])
@pytest.mark.parametrize("overwrite", [False, True])
def test_damaged_or_earlier_record_is_refused_untouched(tmp_path, content, overwrite):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match="run.json is damaged, or"):
        RunFolder(tmp_path, overwrite).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_run_written_before_the_lock_was_held_is_refused(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def slow_lock(path):
        path.mkdir()
        write_record(path / "run.json", {"finished": True, "settings": {}, "files": []})
        yield

    monkeypatch.setattr(run_folder, "folder_lock", slow_lock)
    with pytest.raises(FileExistsError, match="its training is finished"):
        RunFolder(tmp_path / "run").__enter__()
    assert (tmp_path / "run" / "run.json").exists()


def test_only_files_of_killed_writes_are_removed(tmp_path):
    begun(tmp_path)
    ours = [f".{name}.0123456789ab" for name in ("last", "best", "translator")]
    ours = [*(f"{name}.keras" for name in ours), ".run.0123456789ab.json"]
    theirs = [".last.keras", ".best.0123456789.keras", ".mine.0123456789ab.keras"]
    for name in [*ours, *theirs]:
        (tmp_path / name).write_text("x")
    with RunFolder(tmp_path):
        assert not any((tmp_path / name).exists() for name in ours)
        assert all((tmp_path / name).exists() for name in theirs)


@pytest.mark.full
def test_tokenizer_of_run_is_none_if_its_translator_is_lost(
    tmp_path, trained_file, trained_translator
):
    begun(tmp_path)
    shutil.copy(trained_file, tmp_path / "last.keras")
    with RunFolder(tmp_path) as folder:
        assert folder.tokenizer().digest == trained_translator.tokenizer.digest
        os.truncate(tmp_path / "last.keras", 1000)
        with pytest.warns(UserWarning, match="continues without it: .*last.keras"):
            assert folder.tokenizer() is None
    with RunFolder(tmp_path, overwrite=True) as folder:
        assert folder.tokenizer() is None


def test_second_training_in_folder_is_refused(tmp_path):
    with RunFolder(tmp_path / "run") as folder:
        folder.begin(SETTINGS, Model())
        with pytest.raises(FolderInUse, match=r"in use by another process \(process "):
            RunFolder(tmp_path / "run").__enter__()
    with RunFolder(tmp_path / "run"):
        pass
