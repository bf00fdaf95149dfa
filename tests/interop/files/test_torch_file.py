"""PyTorch's files, made by hand, and against PyTorch itself."""

import math
import os
import pickle

import numpy as np
import pytest
from damaged_bytes import damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_bytes import (
    NUMBERS,
    SEQUENCE,
    STORED,
    TABLE,
    ZIP,
    archive,
    call,
    integer,
    mapping,
    name,
    ordered,
    sequence,
    storage,
    tensor,
    text,
)

from keras_vanilla.interop.files.torch_file import read_torch

EXPECTED = np.array([[2, 3, 4], [5, 6, 7]], "float32")
FORMATS = pytest.mark.parametrize("content", [ZIP, SEQUENCE], ids=["zip", "sequence"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pytorch_model.bin"


@pytest.fixture(scope="module")
def shared_path(tmp_path_factory):
    return tmp_path_factory.mktemp("shared") / "pytorch_model.bin"


def read(path, content):
    path.write_bytes(content)
    return read_torch(path)


@FORMATS
def test_both_formats_are_read(path, content):
    arrays = read(path, content)
    assert list(arrays) == ["table"] and arrays["table"].dtype == np.float32
    np.testing.assert_array_equal(arrays["table"], EXPECTED)


@pytest.mark.parametrize(
    "shape, strides, offset, expected",
    [
        ((3, 2), (1, 3), 2, EXPECTED.T),
        ((), (), 9, np.float32(9)),
        ((0, 3), (3, 1), 10, np.zeros((0, 3))),
        ((2, 1, 2), (4, 9, 2), 1, [[[1, 3]], [[5, 7]]]),
    ],
    ids=["transposed", "scalar", "empty", "slice"],
)
def test_tensor_is_a_part_of_its_storage(path, shape, strides, offset, expected):
    part = tensor(storage("0", 10), shape, strides, offset)
    array = read(path, archive(mapping({"a": part}), STORED))["a"]
    assert array.shape == np.shape(expected)
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("order", [b"little", None])
@pytest.mark.parametrize(
    "kind, dtype",
    [
        *(("BFloat16", "uint16"), ("Bool", "bool"), ("Byte", "uint8")),
        *(("Char", "int8"), ("Double", "float64"), ("Half", "float16")),
        *(("Int", "int32"), ("Long", "int64"), ("Short", "int16")),
    ],
)
def test_types_and_byte_orders(path, kind, dtype, order):
    expected = numbers = np.array([0, 1], dtype)
    if kind == "BFloat16":
        numbers, expected = np.array([0xC000, 0x3FC0], dtype), np.float32([-2, 1.5])
    value = mapping({"a": tensor(storage("0", 2, f"{kind}Storage"), (2,), (1,))})
    array = read(path, archive(value, {"0": numbers.tobytes()}, order))["a"]
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


def test_tied_weights_and_parameters(path):
    parameter = call(name("torch._utils", "_rebuild_parameter"), TABLE, b"\x88", b"N")
    arrays = read(path, archive(mapping({"a": TABLE, "b": parameter}), STORED))
    np.testing.assert_array_equal(arrays["a"], EXPECTED)
    np.testing.assert_array_equal(arrays["b"], EXPECTED)


@pytest.mark.parametrize("key", ["model_state_dict", "state_dict", "model"])
def test_state_dict_of_a_checkpoint(path, key):
    optimizer = mapping({"step": TABLE, "betas": sequence([integer(1)])})
    parts = {"epoch": integer(3), "optimizer": optimizer, key: ordered({"a": TABLE})}
    assert list(read(path, archive(mapping(parts), STORED))) == ["a"]


class Call:
    """Python's own pickle of this calls a function."""

    def __init__(self, *function_and_arguments):
        self.parts = function_and_arguments

    def __reduce__(self):
        return self.parts[0], self.parts[1:]


@pytest.mark.parametrize("protocol", range(6))
def test_no_code_is_run(path, tmp_path, protocol):
    folder = tmp_path / "made by the pickle"
    content = pickle.dumps(Call(os.mkdir, str(folder)), protocol)
    pickle.loads(content)  # it would do harm
    folder.rmdir()
    with pytest.raises(ValueError, match=r"os\.mkdir|posix\.mkdir|nt\.mkdir"):
        read(path, archive(content[2 if protocol > 1 else 0 : -1], {}))
    assert not folder.exists()


OPERATIONS = [
    *(b"(", b")", b"]", b"}", b"N", b"\x88", b"0", b"1", b"2", b"a", b"b", b"d", b"e"),
    *(b"l", b"s", b"t", b"u", b"Q", b"R", b"\x85", b"\x86", b"\x87", b"\x93", b"\x94"),
    *(b"o", b"\x81", b"\x8f", b"\x90", b"\x91", b"\x92", mapping({"shape": b")"})),
    *(b"q\x01", b"h\x01", integer(0), integer(3), integer(-1), text("storage")),
    *(name("torch", "FloatStorage"), name("collections", "OrderedDict")),
    *(name("torch._utils", "_rebuild_tensor_v2"), text("0"), TABLE, sequence([TABLE])),
    *(storage("0", 10), mapping({"a": TABLE}), sequence([integer(3)])),
]


@settings(max_examples=300, deadline=None)
@given(operations=st.lists(st.sampled_from(OPERATIONS), max_size=20))
def test_any_pickle_is_refused_or_harmless(shared_path, operations):
    try:
        arrays = dict(read(shared_path, archive(b"".join(operations), STORED)))
    except ValueError as error:
        assert str(shared_path) in str(error)
    else:
        assert all(array.nbytes <= NUMBERS.nbytes for array in arrays.values())
    test_both_formats_are_read(shared_path, ZIP)  # it left nothing behind


@pytest.mark.full
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("zipped", [True, False])
def test_state_dict_equals_that_of_pytorch(path, zipped, protocol):
    torch = pytest.importorskip("torch")
    state = torch.nn.Transformer(6, 3, 1, 1, 10).state_dict()
    numbers = torch.randn(5, 7)
    state |= {"transposed": numbers.T, "slice": numbers[1:3, 2:5], "tied": numbers}
    state |= {"half": numbers.half(), "bfloat16": numbers.bfloat16()}
    state |= {"ids": torch.arange(3), "scalar": torch.tensor(True), "none": numbers[:0]}
    state["parameter"] = torch.nn.Parameter(numbers)
    torch.save(
        state, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped
    )
    arrays = read_torch(path)
    assert list(arrays) == list(state)
    for key, value in torch.load(path, weights_only=False).items():
        assert arrays[key].shape == tuple(value.shape)
        np.testing.assert_array_equal(arrays[key], value.detach().double().numpy())


@pytest.mark.full
def test_training_checkpoint_of_pytorch(path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 5)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    states = {"model_state_dict": model.state_dict(), "epoch": 3, "loss": 0.25}
    torch.save(states | {"optimizer": optimizer.state_dict()}, path)
    weight = model.weight.detach().numpy()
    np.testing.assert_array_equal(read_torch(path)["weight"], weight)
    torch.save(model, path)
    with pytest.raises(ValueError, match=r"holds torch\.nn\.modules\.linear\.Linear"):
        read_torch(path)


@pytest.mark.full
@settings(max_examples=300, deadline=None)
@given(
    dimensions=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=4),
    offset=st.integers(0, 11),
)
def test_parts_of_storages_are_those_of_pytorch(shared_path, dimensions, offset):
    torch = pytest.importorskip("torch")
    shape, strides = zip(*dimensions, strict=True) if dimensions else ((), ())
    part = tensor(storage("0", 10), shape, strides, offset)
    shared_path.write_bytes(archive(mapping({"a": part}), STORED))
    try:
        array = read_torch(shared_path)["a"]
    except ValueError:
        # PyTorch also repeats values, and takes an empty tensor from anywhere.
        if 0 < math.prod(shape) <= 10:
            with pytest.raises(RuntimeError, match="storage"):
                torch.load(shared_path)
    else:
        np.testing.assert_array_equal(array, torch.load(shared_path)["a"].numpy())


@pytest.mark.full
def test_damaged_files_are_read_as_by_pytorch_or_not_at_all(shared_path):
    torch = pytest.importorskip("torch")
    compared = []

    @settings(max_examples=500, deadline=None)
    @given(changed=damaged(SEQUENCE))
    def check(changed):
        try:
            arrays = dict(read(shared_path, changed))
            expected = torch.load(shared_path, weights_only=True)
        except Exception:
            return
        assert arrays.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(arrays[key], value.double().numpy())
        compared.append(changed)

    check()
    assert compared
