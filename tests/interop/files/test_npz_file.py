"""NumPy's `.npz` files, whole and damaged."""

import io
import zipfile

import numpy as np
import pytest
from damaged_bytes import at_most_allocated, damaged
from hypothesis import HealthCheck, given, settings

from keras_vanilla.interop.files.npz_file import NpzArrays

ARRAYS = {
    "special:model.yml": np.arange(7, dtype="int8"),
    "matrix": np.arange(15, dtype="float32").reshape(3, 5),
    "transposed": np.arange(6, dtype="float16").reshape(2, 3).T,
    "number": np.array(4.0),
    "empty": np.zeros((0, 3)),
}


def content(save=np.savez, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


WHOLE = content(**ARRAYS)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_those_that_numpy_wrote(save, tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(content(save, **ARRAYS))
    arrays = NpzArrays(path)
    assert list(arrays) == list(ARRAYS)
    for name, expected in ARRAYS.items():
        assert arrays.shapes[name] == expected.shape
        assert arrays.dtypes[name] == expected.dtype
        np.testing.assert_array_equal(arrays[name], expected)
    assert "other" not in arrays
    with pytest.raises(KeyError):
        arrays["other"]


@given(damaged(WHOLE))
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required")
def test_damaged_files_are_refused_or_read(tmp_path, damaged_content):
    path = tmp_path / "a.npz"
    path.write_bytes(damaged_content)
    with at_most_allocated(5):
        try:
            arrays = dict(NpzArrays(path))
        except ValueError as error:
            assert str(error).startswith(f"{path} cannot be read as an .npz file: ")
        else:
            assert all(isinstance(each, np.ndarray) for each in arrays.values())


def test_no_pickle_is_read(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(content(a=np.array([{}], dtype=object)))
    with pytest.raises(ValueError, match="'a.npy' has object instead of numbers"):
        NpzArrays(path)


def header(shape, size):
    """The bytes of an array that says that it has a shape, and has a size."""
    file = io.BytesIO()
    described = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue() + b"\0" * size


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"a.npy": header((10**6, 10**6), 4)}, "not the size of an array"),
        ({"a.npy": header((2,), 4)}, "not the size of an array"),
        ({"a.npy": header((2,), 12)}, "not the size of an array"),
        ({"a.npy": header((-1,), 4)}, "the shape of 'a.npy' is"),
        ({"a.npy": b"text"}, "magic string"),
        ({"a.txt": b"text"}, "'a.txt' is not an array"),
    ],
)
def test_entries_that_are_not_what_they_say_are_refused(entries, message, tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content_ in entries.items():
            archive.writestr(name, content_)
    with pytest.raises(ValueError, match=message):
        NpzArrays(path)


def test_files_that_are_not_zip_files_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    path.write_bytes(b"text")
    with pytest.raises(ValueError, match="cannot be read as an .npz file: .*not a zip"):
        NpzArrays(path)
    with pytest.raises(FileNotFoundError):
        NpzArrays(tmp_path / "missing.npz")
