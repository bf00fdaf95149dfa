import time
import warnings

import ml_dtypes
import numpy as np
import pytest

from keras_vanilla._folder_lock import FolderInUse, folder_lock
from keras_vanilla.training.resume.snapshots import SeparateArrays, Snapshots


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


def test_a_folder_is_held_while_it_is_written(tmp_path):
    with Snapshots(tmp_path / "run").writing():
        with pytest.raises(FolderInUse), folder_lock(tmp_path / "run"):
            pass
    with folder_lock(tmp_path / "run"):
        pass


def test_only_what_killed_writes_have_left_is_removed(tmp_path):
    ours = ".step-000000000003.0123456789ab.npz"
    weights = ".weights-0123456789abcdef.0123456789ab.npz"
    theirs = [".step-3.npz", ".step-x.0123456789ab.npz", ".mine.0123456789ab.npz"]
    for name in [ours, weights, *theirs]:
        (tmp_path / name).write_text("x")
    with Snapshots(tmp_path).writing():
        pass
    assert {path.name for path in tmp_path.iterdir()} == {*theirs, ".lock"}


def test_what_is_read_is_what_was_written(tmp_path):
    snapshots = Snapshots(tmp_path / "of" / "a run")
    assert snapshots.newest() is None
    with snapshots.writing():
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
    for place in range(0, len(data), 31):
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


def test_a_damaged_shape_is_not_taken_for_a_lack_of_memory(tmp_path):
    snapshots = Snapshots(tmp_path)
    for step in (3, 6):
        snapshots.save(step, {"step": step, "array": np.zeros(5, "float32")})
    data = snapshots.path(6).read_bytes()
    right, damaged = b"(5,), }" + 14 * b" ", b"(999999999999999,), }"
    assert data.count(right) == 1  # in the array's header
    snapshots.path(6).write_bytes(data.replace(right, damaged))
    with pytest.warns(UserWarning, match="does not match its checksum"):
        assert snapshots.newest()["step"] == 3


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


@pytest.mark.parametrize("error", [PermissionError(13, "no"), OSError(5, "I/O")])
def test_what_cannot_be_read_is_not_taken_for_damage(tmp_path, monkeypatch, error):
    snapshots = Snapshots(tmp_path)
    for step in (3, 6):
        snapshots.save(step, state(step))

    def refuse(path, *arguments, **named):
        raise error

    monkeypatch.setattr(np, "load", refuse)
    with pytest.raises(type(error)):
        snapshots.newest()
    monkeypatch.undo()
    assert snapshots.newest()["step"] == 6


def test_a_lack_of_memory_is_not_taken_for_damage(tmp_path, monkeypatch):
    snapshots = Snapshots(tmp_path)
    snapshots.save(3, state(3))

    def too_large(*arguments, **named):
        raise MemoryError

    monkeypatch.setattr(np, "load", too_large)
    with pytest.raises(MemoryError):
        snapshots.newest()
    monkeypatch.undo()
    assert snapshots.newest()["step"] == 3


def weights(seed, size=1000):
    draw = np.random.default_rng(seed)
    return SeparateArrays([draw.normal(size=size), np.array(seed), np.zeros((0, 2))])


def weights_files(folder):
    return {path.name: path.stat().st_ino for path in folder.glob("weights-*.npz")}


def test_separate_arrays_are_written_once_and_deleted_with_the_last_reference(tmp_path):
    snapshots, epochs = Snapshots(tmp_path), [weights(0)]
    snapshots.save(1, {"kept": epochs[:1]})
    first = weights_files(tmp_path)
    epochs.append(weights(1, size=7))
    snapshots.save(2, {"kept": list(epochs)})
    second = weights_files(tmp_path)
    assert len(first) == 1 and len(second) == 2 and first.items() <= second.items()
    assert snapshots.path(2).stat().st_size < 5000
    kept = snapshots.newest()["kept"]
    assert [each.digest for each in kept] == [each.digest for each in epochs]
    for each, its in zip(kept[1], epochs[1], strict=True):
        assert_same(np.asarray(each), its)
    for step in (3, 4):  # two snapshots without the first weights
        assert weights_files(tmp_path) == second
        snapshots.save(step, {"kept": epochs[1:]})
    assert weights_files(tmp_path).items() == second.items() - first.items()


@pytest.mark.parametrize("damage", ["missing", "cut", "others"])
def test_lost_separate_arrays_are_damage_of_their_snapshot(tmp_path, damage):
    snapshots = Snapshots(tmp_path)
    snapshots.save(1, {"step": 1, "kept": [weights(0)]})
    (first,) = tmp_path.glob("weights-*.npz")
    snapshots.save(2, {"step": 2, "kept": [weights(1)]})
    (second,) = {*tmp_path.glob("weights-*.npz")} - {first}
    if damage == "missing":
        second.unlink()
    else:
        data = first.read_bytes() if damage == "others" else second.read_bytes()[:-50]
        second.write_bytes(data)
    with pytest.warns(UserWarning, match=f"cannot be read .{second.name} (is|holds)"):
        assert snapshots.newest()["step"] == 1


def test_a_file_that_is_no_snapshot_is_damage(tmp_path):
    snapshots = Snapshots(tmp_path)
    snapshots.save(1, {"step": 1})
    np.savez(snapshots.path(2), mine=np.zeros(3))
    with pytest.warns(UserWarning, match="000002.npz cannot be read"):
        assert snapshots.newest() == {"step": 1}


def test_a_write_in_the_background_is_waited_for(tmp_path, monkeypatch):
    snapshots, save = Snapshots(tmp_path), Snapshots.save

    def slow(self, *arguments):
        time.sleep(0.2)
        save(self, *arguments)

    monkeypatch.setattr(Snapshots, "save", slow)
    with snapshots.writing():
        snapshots.save_in_background(3, state(3))
    assert Snapshots(tmp_path).last_step() == 3
    assert snapshots.wait() is None


def test_an_error_in_the_background_is_returned(tmp_path):
    snapshots = Snapshots(tmp_path)
    snapshots.path(3).mkdir()
    snapshots.save_in_background(3, state(3))
    assert isinstance(snapshots.wait(), IsADirectoryError)
    assert snapshots.wait() is None


def test_a_folder_that_is_gone_is_not_made_again(tmp_path):
    snapshots = Snapshots(tmp_path / "run")
    snapshots.save_in_background(3, state(3))
    with pytest.raises(FileNotFoundError, match="run is gone: .* Rename it back"):
        snapshots.wait()
    assert not (tmp_path / "run").exists()


def test_when_none_can_be_read_that_is_said(tmp_path):
    snapshots = Snapshots(tmp_path)
    for step in (3, 6):
        snapshots.save(step, state(step))
        snapshots.path(step).write_bytes(b"nothing")
    with pytest.raises(ValueError, match="No snapshot in .* can be read: delete"):
        with pytest.warns(UserWarning, match="cannot be read"):
            snapshots.newest()


def test_a_full_disk_leaves_those_before_as_they_were(tmp_path):
    """The limit on a file's size is the nearest to a full disk without being root."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    snapshots = Snapshots(tmp_path)
    snapshots.save(3, state(3))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"Errno 27"):
            snapshots.save(4, {"big": np.zeros(1_000_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000000003.npz"]
    assert_same(snapshots.newest(), state(3))


def test_a_file_in_the_folders_place_is_named(tmp_path):
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(OSError, match="mine"):
        Snapshots(tmp_path / "mine").save(0, state(0))
    assert (tmp_path / "mine").read_text() == "kept"
