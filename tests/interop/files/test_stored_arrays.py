"""Safetensors files, by their description and against PyTorch's writer."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_vanilla.interop.files.stored_arrays import read_safetensors

ARRAYS = {
    "table": np.arange(15, dtype="float32").reshape(3, 5) / 7,
    "half": np.array([0.5, -2], "float16"),
    "ids": np.array([[-1, 2**40]], "int64"),
    "flags": np.array([True, False, True]),
    "scalar": np.array(2.5, "float64"),
    "empty": np.zeros((0, 4), "float32"),
}


def assert_equal_arrays(arrays, expected):
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype and arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_types_are_kept(tmp_path):
    save_file(ARRAYS, tmp_path / "model.safetensors")
    assert_equal_arrays(read_safetensors(tmp_path / "model.safetensors"), ARRAYS)


def write_tensor(path, dtype, shape, data):
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}
    header = json.dumps({"a": entry}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


def test_bfloat16_becomes_float32(tmp_path):
    path = tmp_path / "model.safetensors"
    write_tensor(path, "BF16", [1, 2], np.array([0x3FC0, 0xC000], "<u2").tobytes())
    assert_equal_arrays(read_safetensors(path), {"a": np.float32([[1.5, -2]])})


def test_shards_are_read_as_one(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"table": ARRAYS["table"]}, tmp_path / "1.safetensors")
    save_file({"half": ARRAYS["half"]}, tmp_path / "2.safetensors")
    files = {"table": "1.safetensors", "half": "2.safetensors"}
    index = {"metadata": {}, "weight_map": files}
    path.with_name(f"{path.name}.index.json").write_text(json.dumps(index))
    assert_equal_arrays(read_safetensors(path), {key: ARRAYS[key] for key in files})
    save_file({"ids": ARRAYS["ids"]}, path)  # it has priority over the index
    assert list(read_safetensors(path)) == ["ids"]


@pytest.mark.full
def test_types_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    save_torch = pytest.importorskip("safetensors.torch").save_file
    numbers = torch.randn(7, 11, generator=torch.Generator().manual_seed(1))
    kinds = [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int16]
    tensors = {str(kind): (100 * numbers).to(kind) for kind in kinds}
    save_torch(tensors, tmp_path / "model.safetensors")
    arrays = read_safetensors(tmp_path / "model.safetensors")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(arrays[name], tensor.double().numpy())
