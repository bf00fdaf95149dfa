"""Safetensors files, against the format's own package."""

import json

import numpy as np
import pytest
from damaged_bytes import at_most_allocated, damaged
from hypothesis import given, settings

from keras_vanilla.interop.files.safetensors_file import (
    read_safetensors,
    write_safetensors,
)

ARRAYS = {
    "table": np.arange(15, dtype="float32").reshape(3, 5) / 7,
    "half": np.array([0.5, -2], "float16"),
    "ids": np.array([[-1, 2**40]], "int64"),
    "bytes": np.array([0, 255], "uint8"),
    "flags": np.array([True, False, True]),
    "scalar": np.array(2.5, "float64"),
    "empty": np.zeros((0, 4), "float32"),
}


def file_bytes(header, data=b""):
    """A file by the words of the format's description."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(header).to_bytes(8, "little") + header + data


def entry(begin, end, shape, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


TWO = file_bytes(
    {
        "__metadata__": {"format": "pt"},
        "a": entry(0, 16, [2, 2]),
        "b": entry(16, 20, [1, 2], "BF16"),
    },
    np.array([1, 2, 3, 4], "<f4").tobytes()
    + np.array([0x3FC0, 0xC000], "<u2").tobytes(),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture(scope="module")
def shared_path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "model.safetensors"


def assert_equal_arrays(arrays, expected):
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype and arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_a_file_is_read_as_its_description_says(path):
    path.write_bytes(TWO)
    arrays = read_safetensors(path)
    assert_equal_arrays(
        arrays,
        {
            "a": np.array([[1, 2], [3, 4]], "float32"),
            "b": np.array([[1.5, -2]], "float32"),
        },
    )


def test_what_is_written_is_read(path):
    write_safetensors(path, ARRAYS)
    assert_equal_arrays(read_safetensors(path), ARRAYS)


def test_equal_arrays_give_equal_bytes(path):
    write_safetensors(path, ARRAYS, {"format": "pt", "a": "b"})
    before = path.read_bytes()
    swapped = {
        name: array.astype(array.dtype.newbyteorder()) for name, array in ARRAYS.items()
    }
    write_safetensors(path, dict(reversed(swapped.items())), {"a": "b", "format": "pt"})
    assert path.read_bytes() == before


def test_arrays_in_column_order_are_written_in_row_order(path):
    write_safetensors(path, {"a": ARRAYS["table"].T})
    np.testing.assert_array_equal(read_safetensors(path)["a"], ARRAYS["table"].T)


def test_written_arrays_are_aligned(path):
    write_safetensors(path, ARRAYS)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    header = json.loads(content[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    for name, each in header.items():
        assert each["data_offsets"][0] % ARRAYS[name].itemsize == 0


def test_an_array_is_read_when_asked_for(path):
    write_safetensors(path, {"a": np.zeros((500, 1000), "float32")})
    with at_most_allocated(0.1):
        arrays = read_safetensors(path)
        assert list(arrays) == ["a"] and "a" in arrays
    with at_most_allocated(2.2):
        for _ in range(3):
            assert arrays["a"].shape == (500, 1000)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="was cut off while it was read"):
        arrays["a"]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "it has 0 bytes"),
        (TWO[:7], "it has 7 bytes"),
        (TWO[:30], "longer than the file"),
        (TWO[:-1], "its arrays need 20 bytes, and 19 are there"),
        (TWO + b"x", "need 20 bytes, and 21"),
        (b"\xff" * 8 + TWO[8:], "18446744073709551615"),
        (file_bytes(b"not JSON"), "not JSON"),
        (file_bytes(b"[" * 100_000), "damaged"),
        (file_bytes(b"\xff\xfe{}"), "not JSON"),
        (file_bytes(b"[]"), "not a JSON object"),
        (file_bytes(b'{"a":{},"a":{}}'), "a name occurs twice"),
        (file_bytes({"a": 1}), "'a' has the unknown type 'None'"),
        (file_bytes({"a": entry(0, 4, [4], "F8_E4M3")}, b"1234"), "type 'F8_E4M3'"),
        (file_bytes({"a": entry(0, 8, [1])}, b"12345678"), "8 bytes for the shape"),
        (file_bytes({"a": entry(0, 4, [-1])}, b"1234"), "the shape of 'a' is"),
        (file_bytes({"a": entry(0, 4, ["1"])}, b"1234"), "the shape of 'a' is"),
        (file_bytes({"a": entry(0, 4, [True])}, b"1234"), "the shape of 'a' is"),
        (file_bytes({"a": entry(0, 4, [1] * 33)}, b"1234"), "the shape of 'a' is"),
        (file_bytes({"a": entry(0, 0, [0, *[2**30] * 4])}), "the shape of 'a' is"),
        (file_bytes({"a": entry(0, 2**57, [2**27, 2**28])}), "need 144115188075855872"),
        (file_bytes({"a": entry(0.0, 4, [1])}, b"1234"), "has the range"),
        (file_bytes({"a": entry(-4, 0, [1])}, b""), "begins at byte -4"),
        (file_bytes({"a": entry(4, 8, [1])}, b"12345678"), "begins at byte 4"),
        (
            file_bytes({"a": entry(0, 8, [2]), "b": entry(4, 12, [2])}, b"1" * 12),
            "begins at byte 4 of the arrays, and 8 was expected",
        ),
        (b"version https://git-lfs.github.com/spec/v1\noid 1", "git lfs pull"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_file_is_refused(path, content, message):
    path.write_bytes(content)
    with at_most_allocated(5), pytest.raises(ValueError, match=message) as error:
        read_safetensors(path)
    assert str(path) in str(error.value) and str(error.value).endswith(".")


def test_a_header_that_is_too_long_is_not_read(path):
    with open(path, "wb") as file:
        file.write((100_000_001).to_bytes(8, "little"))
        file.truncate(100_000_100)
    with at_most_allocated(1), pytest.raises(ValueError, match="too long"):
        read_safetensors(path)


@settings(max_examples=150, deadline=None)
@given(content=damaged(TWO))
def test_any_damage_is_refused_or_read_as_the_file_says(shared_path, content):
    shared_path.write_bytes(content)
    with at_most_allocated(2):
        try:
            arrays = read_safetensors(shared_path)
        except ValueError:
            return
        length = int.from_bytes(content[:8], "little")
        for name, each in json.loads(content[8 : 8 + length]).items():
            if name != "__metadata__":
                begin, end = each["data_offsets"]
                array = arrays[name]
                assert list(array.shape) == each["shape"]
                if each["dtype"] != "BF16":
                    data = content[8 + length :][begin:end]
                    assert array.tobytes() == data


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([1j]), np.array([None])])
def test_other_types_are_not_written(path, value):
    with pytest.raises(ValueError, match="cannot hold an array named 'a' of type"):
        write_safetensors(path, {"a": value})
    assert not path.exists()


def write_shards(folder, weight_map):
    write_safetensors(folder / "1.safetensors", {"a": ARRAYS["table"]})
    write_safetensors(folder / "2.safetensors", {"b": ARRAYS["half"]})
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps(weight_map))
    return folder / "model.safetensors"


def test_shards_are_read_as_one(tmp_path):
    files = {"a": "1.safetensors", "b": "2.safetensors"}
    path = write_shards(tmp_path, {"metadata": {}, "weight_map": files})
    expected = {"a": ARRAYS["table"], "b": ARRAYS["half"]}
    assert_equal_arrays(read_safetensors(path), expected)
    write_safetensors(path, {"c": ARRAYS["half"]})  # it comes before the index
    assert list(read_safetensors(path)) == ["c"]


@pytest.mark.parametrize(
    "index, message",
    [
        ({"weight_map": {"a": "../1.safetensors"}}, "in another folder"),
        ({"weight_map": {"a": "/1.safetensors"}}, "in another folder"),
        ({"weight_map": {"a": 1}}, "is not the index"),
        ({"weight_map": []}, "is not the index"),
        ({}, "is not the index"),
        ([], "is not the index"),
        (
            {"weight_map": {"a": "1.safetensors", "c": "2.safetensors"}},
            "the index of its checkpoint lack.* 'b'",
        ),
        ({"weight_map": {"a": "1.safetensors", "c": "1.safetensors"}}, "files .* 'c'"),
    ],
)
def test_a_wrong_index_is_refused(tmp_path, index, message):
    path = write_shards(tmp_path, index)
    with pytest.raises(ValueError, match=message):
        read_safetensors(path)


def test_a_missing_file_is_named(path):
    with pytest.raises(FileNotFoundError, match="model.safetensors"):
        read_safetensors(path)


def test_a_missing_shard_is_named(tmp_path):
    path = write_shards(tmp_path, {"weight_map": {"a": "3.safetensors"}})
    with pytest.raises(FileNotFoundError, match="3.safetensors"):
        read_safetensors(path)


@pytest.mark.full
def test_the_format_s_own_package_reads_what_is_written(path):
    numpy_files = pytest.importorskip("safetensors.numpy")
    write_safetensors(path, ARRAYS)
    assert_equal_arrays(numpy_files.load_file(path), ARRAYS)
    numpy_files.save_file(dict(ARRAYS), path, {"format": "pt"})
    assert_equal_arrays(read_safetensors(path), ARRAYS)


@pytest.mark.full
def test_pytorch_s_types_are_read(path):
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    numbers = torch.randn(7, 11, generator=torch.Generator().manual_seed(1))
    kinds = [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int16]
    tensors = {str(kind): (100 * numbers).to(kind) for kind in kinds}
    save_file(tensors, path)
    arrays = read_safetensors(path)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(arrays[name], tensor.double().numpy())


@pytest.mark.full
@settings(max_examples=500, deadline=None)
@given(content=damaged(TWO))
def test_what_is_accepted_is_what_the_format_s_own_package_reads(shared_path, content):
    torch_files = pytest.importorskip("safetensors.torch")
    shared_path.write_bytes(content)
    try:
        arrays = dict(read_safetensors(shared_path))
    except ValueError:
        return
    for name, tensor in torch_files.load(content).items():
        np.testing.assert_array_equal(arrays.pop(name), tensor.double().numpy())
    assert not arrays
