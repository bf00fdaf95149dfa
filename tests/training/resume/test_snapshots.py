import subprocess
import sys
import textwrap
import warnings

import ml_dtypes
import numpy as np
import pytest

from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla.training.resume.snapshots import Snapshots


def state(step):
    return {
        "step": step,
        "loss": 0.1 + step,
        "nothing": None,
        "weights": [np.full((3, 2), step, "float32"), np.float64(1 / 3)],
        "half": np.array([[1.5, -2.0]], ml_dtypes.bfloat16),
        "seed": np.array([7, step], "uint32"),
        "of each": {"a": {"b": [1, 2.5, True]}, "array": "a name like ours"},
    }


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list):
        for each, its in zip(one, other, strict=True):
            assert_same(each, its)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def test_a_held_folder_refuses_others_and_can_be_held_again(tmp_path):
    snapshots = Snapshots(tmp_path / "run")
    snapshots.hold()
    with pytest.raises(FolderInUse), folder_lock(tmp_path / "run"):
        pass
    again = Snapshots(tmp_path / "run")  # as after a `fit` that raised an error
    again.hold()
    again.release()
    with folder_lock(tmp_path / "run"):
        pass
    snapshots.drop()
    assert not (tmp_path / "run").exists()


def test_holding_removes_only_what_killed_writes_have_left(tmp_path):
    ours = ".step-000000000003.0123456789ab.npz"
    theirs = [".step-3.npz", ".step-x.0123456789ab.npz", ".mine.0123456789ab.npz"]
    for name in [ours, *theirs]:
        (tmp_path / name).write_text("x")
    snapshots = Snapshots(tmp_path)
    snapshots.hold()
    snapshots.release()
    assert {path.name for path in tmp_path.iterdir()} == {*theirs, ".lock"}


def test_what_is_read_is_what_was_written(tmp_path):
    snapshots = Snapshots(tmp_path / "of" / "a run")
    assert snapshots.newest() is None
    snapshots.save(7, state(7))
    assert_same(snapshots.newest(), state(7))


def test_the_last_two_are_kept(tmp_path):
    snapshots = Snapshots(tmp_path)
    for step in (0, 9, 10, 1_000):
        snapshots.save(step, state(step))
    assert snapshots.paths() == [snapshots.path(10), snapshots.path(1_000)]
    assert snapshots.newest()["step"] == 1_000


def test_a_step_saved_again_replaces_its_file(tmp_path):
    snapshots = Snapshots(tmp_path)
    for loss in (1.0, 2.0):
        snapshots.save(4, {"loss": loss})
    assert snapshots.newest() == {"loss": 2.0}
    assert len(snapshots.paths()) == 1


@pytest.mark.parametrize("share", [0, 0.3, 0.6, 0.999])
def test_of_a_file_cut_short_the_one_before_is_used(tmp_path, share):
    snapshots = Snapshots(tmp_path)
    for step in (3, 6):
        snapshots.save(step, state(step))
    data = snapshots.path(6).read_bytes()
    snapshots.path(6).write_bytes(data[: int(share * len(data))])
    with pytest.warns(UserWarning, match="step-000000000006.npz cannot be read"):
        assert snapshots.newest()["step"] == 3


def test_every_flipped_byte_that_changes_the_state_is_found(tmp_path):
    snapshots = Snapshots(tmp_path)
    for step in (3, 6):
        snapshots.save(step, state(step))
    data = snapshots.path(6).read_bytes()
    found = 0
    for place in range(0, len(data), 37):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        snapshots.path(6).write_bytes(broken)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read = snapshots.newest()
        found += read["step"] == 3
        if read["step"] == 6:  # a time, a permission: what says nothing of the state
            assert_same(read, state(6))
    assert found > 20


def test_a_damaged_one_is_not_among_the_two_that_are_kept(tmp_path):
    snapshots = Snapshots(tmp_path)
    for step in (3, 6):
        snapshots.save(step, state(step))
    snapshots.path(6).write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="cannot be read"):
        snapshots.newest()
    snapshots.save(9, state(9))
    snapshots.path(9).write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="cannot be read"):
        assert snapshots.newest()["step"] == 3


def test_files_with_other_names_are_not_touched(tmp_path):
    (tmp_path / "step-000000000500.npz.bak").write_text("mine")
    snapshots = Snapshots(tmp_path)
    for step in (3, 6, 9):
        snapshots.save(step, state(step))
    assert snapshots.last_step() == 9 and len(snapshots.paths()) == 2
    assert (tmp_path / "step-000000000500.npz.bak").read_text() == "mine"


def test_when_none_can_be_read_that_is_said(tmp_path):
    snapshots = Snapshots(tmp_path)
    for step in (3, 6):
        snapshots.save(step, state(step))
        snapshots.path(step).write_bytes(b"nothing")
    with pytest.raises(ValueError, match="No snapshot in .* can be read: delete"):
        with pytest.warns(UserWarning, match="cannot be read"):
            snapshots.newest()


@pytest.mark.full
def test_a_full_disk_leaves_those_before_as_they_were(tmp_path):
    """The limit on a file's size is the nearest to a full disk without being root."""
    snapshots = Snapshots(tmp_path)
    snapshots.save(3, state(3))
    code = f"""
        import resource
        import numpy as np
        from keras_vanilla.training.resume.snapshots import Snapshots

        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            Snapshots({str(tmp_path)!r}).save(4, {{"big": np.zeros(1_000_000)}})
        except OSError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )
    assert done.stdout.startswith("OSError [Errno 27]"), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000000003.npz"]
    assert_same(snapshots.newest(), state(3))


def test_a_file_in_the_folders_place_is_named(tmp_path):
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(OSError, match="mine"):
        Snapshots(tmp_path / "mine").save(0, state(0))
    assert (tmp_path / "mine").read_text() == "kept"
