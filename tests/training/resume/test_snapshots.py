import warnings

import ml_dtypes
import numpy as np
import pytest

from keras_vanilla.training.resume import snapshots as module
from keras_vanilla.training.resume.snapshots import Snapshots, pack, unpack

STATE = {
    "step": 6,
    "loss": float("inf"),
    "nothing": None,
    "tuple": (1, [2.5, ("a", ())], {}),
    3: {(1, "x"): True, None: "ü", 7: {"array": 5, "dict": []}},
    "arrays": [
        np.full((3, 2), 1.5, "float32"),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array([1, 2], ">i4"),
        np.zeros((0, 2)),
        np.array(7, "uint32"),
        np.array([[1.5, -2.0]], ml_dtypes.bfloat16),
        np.array([True, False]),
    ],
    "numbers": [np.float64(1 / 3), np.int64(-1), np.bool_(True)],
}


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        one, other = list(one.items()), list(other.items())
    if isinstance(one, (list, tuple)):
        for each, its in zip(one, other, strict=True):
            assert_same(each, its)
    elif isinstance(one, (np.ndarray, np.generic)):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    else:
        assert one == other


def saved(folder, *steps, state=None):
    snapshots = Snapshots(folder)
    with snapshots.writing():
        for step in steps:
            snapshots.save(step, pack({"step": step} if state is None else state))
    return snapshots


def test_state_comes_back_with_its_types(tmp_path):
    assert Snapshots(tmp_path / "of").newest() is None
    assert_same(saved(tmp_path / "of" / "a run", 6, state=STATE).newest(), STATE)


def test_packed_state_does_not_change():
    array, inner = np.zeros(3), [1]
    packed = pack({"array": array, "view": array[::2], "inner": inner})
    array += 1
    inner.append(2)
    state = unpack(packed)
    assert not state["array"].any() and not state["view"].any()
    assert state["inner"] == [1]
    assert pack(state)[1] is packed[1]  # it is not copied again


def test_last_two_snapshots_are_kept(tmp_path):
    (tmp_path / "step-000000000500.npz.bak").write_text("mine")
    snapshots = saved(tmp_path, 0, 9, 10, 1_000, 1_000)
    assert sorted(tmp_path.glob("*.npz")) == [snapshots.path(10), snapshots.path(1_000)]
    assert snapshots.last_step() == snapshots.newest()["step"] == 1_000
    assert snapshots.last_path() == snapshots.path(1_000)
    assert (tmp_path / "step-000000000500.npz.bak").read_text() == "mine"


def damages(content):
    yield from (content[:size] for size in range(len(content)))
    for place in range(len(content)):
        broken = bytearray(content)
        broken[place] ^= 1 << place % 8
        yield bytes(broken)
    yield content + b"x"


def test_each_damaged_byte_is_found_before_memory_is_used(tmp_path, monkeypatch):
    snapshots = saved(tmp_path, 6, state={"step": 6, "array": np.arange(5.0)})
    path, reads = snapshots.path(6), []
    content = path.read_bytes()
    monkeypatch.setattr(np, "load", lambda *_, **__: reads.append(1))
    for damaged in damages(content):
        path.write_bytes(damaged)
        with pytest.raises(module.Damaged, match=f"{path} is damaged, or"):
            module._read(path)
    assert not reads


def test_damaged_snapshot_is_replaced_by_one_before(tmp_path):
    snapshots = saved(tmp_path, 3, 6)
    snapshots.path(6).write_bytes(b"PK\3\4 of 0.7.0")
    with pytest.warns(UserWarning, match="step-000000000006.npz is damaged"):
        assert snapshots.newest() == {"step": 3}
    snapshots.path(3).write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="No snapshot in .* can be read: delete"):
            snapshots.newest()


def test_unreadable_snapshot_is_not_damaged(tmp_path, monkeypatch):
    snapshots = saved(tmp_path, 3, 6)

    def refuse(*_, **__):
        raise OSError(5, "I/O")

    monkeypatch.setattr(np, "load", refuse)
    with pytest.raises(OSError, match="I/O"):
        snapshots.newest()
    monkeypatch.undo()
    assert snapshots.newest()["step"] == 6


def test_full_disk_leaves_previous_snapshots(tmp_path):
    """The limit on a file's size is the nearest to a full disk without being root."""
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    snapshots = Snapshots(tmp_path)
    snapshots.save(3, pack(STATE))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"Errno 27"):
            snapshots.save(4, pack({"big": np.zeros(1_000_000)}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000000003.npz"]
    assert_same(snapshots.newest(), STATE)
