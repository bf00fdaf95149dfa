import json

import pytest

from keras_vanilla.training.run_folder import RunRecord

ASKED = {"epochs": 3, "dropout": 0.1, "corpus": "ab12", "preset": None}


def begun(folder, asked=ASKED, step=4):
    """A training as it is after a kill."""
    record = RunRecord(folder)
    assert not record.goes_on(asked)
    record.begin(asked)
    record.snapshots.save(step, {})
    return record


def test_a_new_folder_and_an_empty_one_begin(tmp_path):
    for folder in (tmp_path, tmp_path / "new" / "folder"):
        assert not RunRecord(folder).goes_on(ASKED)


def test_the_same_training_goes_on(tmp_path):
    begun(tmp_path / "run")
    assert RunRecord(tmp_path / "run").goes_on(dict(ASKED))
    assert RunRecord(tmp_path / "run").goes_on(dict(ASKED), overwrite=True)


def test_killed_before_the_first_snapshot_it_begins_again(tmp_path):
    begun(tmp_path).snapshots.drop()
    assert not RunRecord(tmp_path).goes_on(ASKED)


def test_killed_before_there_was_a_record_it_begins_again(tmp_path):
    (tmp_path / ".run.json.unfinished").write_text('{"fin')
    assert not RunRecord(tmp_path).goes_on(ASKED)


def test_another_training_is_refused_with_what_is_different(tmp_path):
    begun(tmp_path)
    other = {**ASKED, "epochs": 5, "valid": "cd34"}
    with pytest.raises(
        FileExistsError,
        match="other settings: epochs was 3 and is 5; valid was None and is 'cd34'",
    ):
        RunRecord(tmp_path).goes_on(other)
    assert RunRecord(tmp_path).snapshots.last_step() == 4


def test_another_training_that_overwrites_begins_without_the_snapshots(tmp_path):
    begun(tmp_path)
    record = RunRecord(tmp_path)
    assert not record.goes_on({**ASKED, "epochs": 5}, overwrite=True)
    assert record.snapshots.last_step() == 4  # nothing is lost before it begins
    record.begin({**ASKED, "epochs": 5})
    assert record.snapshots.last_step() is None
    assert json.loads((tmp_path / "run.json").read_text())["asked"]["epochs"] == 5


def test_a_finished_training_is_refused(tmp_path):
    record = begun(tmp_path)
    record.finish()
    assert record.snapshots.last_step() is None
    with pytest.raises(FileExistsError, match="exists already; nothing was written"):
        RunRecord(tmp_path).refuse_finished()
    assert not RunRecord(tmp_path).goes_on(ASKED, overwrite=True)


@pytest.mark.parametrize("name", ["mine.txt", "translator.keras"])
def test_a_folder_with_something_else_is_refused(tmp_path, name):
    (tmp_path / name).write_text("kept")
    with pytest.raises(FileExistsError, match="exists already"):
        RunRecord(tmp_path).goes_on(ASKED)
    assert not RunRecord(tmp_path).goes_on(ASKED, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_in_the_folders_place_is_refused(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(FileExistsError, match="file exists already"):
        RunRecord(tmp_path / "file").refuse_finished()


@pytest.mark.parametrize("content", ["{", "{}", "[1]", '{"finished": true}'])
def test_a_record_that_cannot_be_read_is_refused_or_overwritten(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError, match="run.json is damaged, or not of a training"):
        RunRecord(tmp_path).refuse_finished()
    record = RunRecord(tmp_path)
    assert not record.goes_on(ASKED, overwrite=True)
    record.begin(ASKED)
    assert json.loads((tmp_path / "run.json").read_text())["asked"] == ASKED


def test_of_what_is_overwritten_the_translator_alone_stays(tmp_path):
    for name in ("translator.keras", "best.keras", "results.json"):
        (tmp_path / name).write_text("of another")
    (tmp_path / "logs").mkdir()
    RunRecord(tmp_path).begin(ASKED)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"translator.keras", "run.json"}
