"""PyTorch's files, made by hand, and against PyTorch itself."""

import math
import os
import pickle
import zipfile

import numpy as np
import pytest
from damaged_bytes import at_most_allocated, damaged
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.interop.files import plain_pickle, torch_file
from keras_vanilla.interop.files.torch_file import read_torch

from .torch_file_bytes import (
    MAGIC_NUMBER,
    archive,
    call,
    integer,
    mapping,
    name,
    ordered,
    pickle_of,
    sequence,
    sequential,
    storage,
    tensor,
    text,
)

NUMBERS = np.arange(10, dtype="<f4")
TABLE = tensor(storage("0", 10), (2, 3), (3, 1), offset=2)
EXPECTED = np.array([[2, 3, 4], [5, 6, 7]], "float32")
ARCHIVE = archive(ordered({"table": TABLE}), {"0": NUMBERS.tobytes()})
STATE = mapping({"table": TABLE})
STORED = {"0": NUMBERS.tobytes()}
ZERO = storage("0", 10)
REBUILD = name("torch._utils", "_rebuild_tensor_v2")
SEQUENTIAL = sequential(
    ordered({"table": tensor(storage("7", 10, legacy=True), (2, 3), (3, 1), 2)}),
    {"7": (10, NUMBERS.tobytes())},
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pytorch_model.bin"


@pytest.fixture(scope="module")
def shared_path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "pytorch_model.bin"


def read(path, content):
    path.write_bytes(content)
    return read_torch(path)


def of_archive(path, value, storages=None):
    """What is read from an archive with ten numbers."""
    storages = {"0": NUMBERS.tobytes()} if storages is None else storages
    return read(path, archive(value, storages))


@pytest.mark.parametrize("content", [ARCHIVE, SEQUENTIAL], ids=["zip", "sequence"])
def test_both_formats_are_read(path, content):
    arrays = read(path, content)
    assert list(arrays) == ["table"] and arrays["table"].shape == (2, 3)
    assert arrays["table"].dtype == np.float32
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
def test_a_tensor_is_the_part_of_its_storage(path, shape, strides, offset, expected):
    value = mapping({"a": tensor(storage("0", 10), shape, strides, offset)})
    array = of_archive(path, value)["a"]
    assert array.shape == np.shape(expected)
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    "kind, dtype",
    [
        ("BoolStorage", "bool"),
        ("ByteStorage", "uint8"),
        ("CharStorage", "int8"),
        ("DoubleStorage", "float64"),
        ("HalfStorage", "float16"),
        ("IntStorage", "int32"),
        ("LongStorage", "int64"),
        ("ShortStorage", "int16"),
    ],
)
@pytest.mark.parametrize("order", [b"little", b"big", None])
def test_types_and_byte_orders(path, kind, dtype, order):
    value = mapping({"a": tensor(storage("0", 2, kind), (2,), (1,))})
    numbers = np.array([0, 1], dtype)
    stored = numbers.astype(numbers.dtype.newbyteorder(">" if order == b"big" else "<"))
    array = read(path, archive(value, {"0": stored.tobytes()}, order))["a"]
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, numbers)


@pytest.mark.parametrize("order", ["little", "big"])
def test_bfloat16_becomes_float32(path, order):
    value = mapping({"a": tensor(storage("0", 1, "BFloat16Storage"), (1,), (1,))})
    content = (0xC000).to_bytes(2, order)
    array = read(path, archive(value, {"0": content}, order.encode()))["a"]
    assert array.dtype == np.float32 and array.tolist() == [-2]


def test_tied_weights_and_parameters(path):
    parameter = call(name("torch._utils", "_rebuild_parameter"), TABLE, b"\x88", b"N")
    arrays = of_archive(path, mapping({"a": TABLE, "b": parameter}))
    np.testing.assert_array_equal(arrays["a"], arrays["b"])


@pytest.mark.parametrize("key", ["model_state_dict", "state_dict", "model"])
def test_the_state_dict_of_a_checkpoint_is_found(path, key):
    optimizer = mapping({"step": TABLE, "betas": sequence([integer(1)])})
    parts = {"epoch": integer(3), "optimizer": optimizer, key: ordered({"a": TABLE})}
    assert list(of_archive(path, mapping(parts))) == ["a"]


@pytest.mark.parametrize("content", [ARCHIVE, SEQUENTIAL], ids=["zip", "sequence"])
def test_an_array_is_read_when_asked_for(path, content):
    arrays = read(path, content)
    path.write_bytes(content[:20])
    with pytest.raises(ValueError, match="was cut off while it was read"):
        arrays["table"]


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
        of_archive(path, content[2 if protocol > 1 else 0 : -1])
    assert not folder.exists()


@pytest.mark.parametrize(
    "operations, message",
    [
        (name("argparse", "Namespace"), r"argparse\.Namespace.*torch\.save\(model"),
        (name("builtins", "eval"), r"builtins\.eval"),
        (name("torch", "load"), r"torch\.load"),
        (b"(I1\nios\nsystem\n", "operation INST"),
        (name("collections", "OrderedDict") + b")\x81", "operation NEWOBJ"),
        (b"(" + name("collections", "OrderedDict") + b"o", "operation OBJ"),
        (b"\x82\x01", "operation EXT1"),
        (b"\x83\x01\x00", "operation EXT2"),
        (b"Pos\n", "operation PERSID"),
        (b"\x8f", "operation EMPTY_SET"),
        (b"\x96" + (2**62).to_bytes(8, "little"), "cannot be read"),
        (b"\x8d" + (2**62).to_bytes(8, "little"), "cannot be read"),
        (b"N)R", "NoneType in the place of a Name"),
        (name("torch", "FloatStorage") + b")R", r"it calls torch\.FloatStorage"),
        (call(name("collections", "OrderedDict"), b"](Na"), "damaged"),
        (b"N}b", "NoneType in the place of a dict"),
        (b"}" + sequence([sequence([b"N"])]) + b"Ns", "tuple in the place of a str"),
        (b"}(Nu", "a key without a value"),
        (b"a", "damaged"),
        (b"t", "damaged"),
        (b"\x85", "damaged"),
        (b"h\x05", "damaged"),
        (integer(1), "contains a int, not a dict"),
        (mapping({"a": integer(1)}), "it has the keys 'a', and no state dict"),
        (mapping({"a": TABLE, "b": b"N"}), "its 'b' is of type NoneType"),
        (mapping({"model": mapping({"a": b"N"})}), "its 'a' is of type NoneType"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_pickles_are_refused(path, operations, message):
    with pytest.raises(ValueError, match=message) as error:
        of_archive(path, operations)
    assert str(path) in str(error.value)


OPERATIONS = [
    *(b"(", b")", b"]", b"}", b"N", b"\x88", b"0", b"1", b"2", b"a", b"b", b"d", b"e"),
    *(b"l", b"s", b"t", b"u", b"Q", b"R", b"\x85", b"\x86", b"\x87", b"\x93", b"\x94"),
    *(b"q\x01", b"h\x01", integer(0), integer(3), integer(-1), text("storage")),
    *(name("torch", "FloatStorage"), name("collections", "OrderedDict")),
    *(name("torch._utils", "_rebuild_tensor_v2"), text("0"), TABLE, sequence([TABLE])),
    *(storage("0", 10), mapping({"a": TABLE}), sequence([integer(3)])),
]


@settings(max_examples=300, deadline=None)
@given(operations=st.lists(st.sampled_from(OPERATIONS), max_size=20))
def test_any_operations_are_refused_or_harmless(shared_path, operations):
    try:
        arrays = of_archive(shared_path, b"".join(operations))
    except ValueError as error:
        assert str(shared_path) in str(error)
    else:
        assert all(arrays[key].nbytes <= 40 for key in arrays)


NESTED = b"]q\x01" + b"0](h\x01h\x01eq\x01" * 60  # written out, it has no end


@pytest.mark.parametrize(
    "content",
    [
        archive(NESTED, STORED),
        archive(mapping({"a": NESTED}), STORED),
        archive(mapping({"a": TABLE, "b": NESTED}), STORED),
        archive(sequence([NESTED]) + b"Q", STORED),
        archive(call(NESTED), STORED),
        archive(mapping({"a": call(REBUILD, ZERO, *[NESTED] * 5)}), STORED),
        archive(
            mapping({"a": call(REBUILD, ZERO, integer(0), NESTED, NESTED)}), STORED
        ),
        sequential(NESTED, {}),
        sequential(STATE, {}, magic=NESTED),
        sequential(STATE, {})[:-5] + b"]" + NESTED + b"a.",
        pickle_of(MAGIC_NUMBER) + pickle_of(NESTED),
    ],
    ids=range(11),
)
def test_nested_values_are_refused_quickly(path, content):
    with at_most_allocated(2), pytest.raises(ValueError, match="cannot be read"):
        read(path, content)


def test_a_pickle_of_endless_values_is_refused(path, monkeypatch):
    monkeypatch.setattr(plain_pickle, "_MOST_OPERATIONS", 1000)
    with pytest.raises(ValueError, match="more than 1,000 values"):
        of_archive(path, b"]" * 1001)


def test_a_pickle_that_is_too_large_is_not_read(path, monkeypatch):
    monkeypatch.setattr(torch_file, "_LARGEST_PICKLE", 1000)
    with pytest.raises(ValueError, match=r"data\.pkl has \d+ bytes, which is too much"):
        of_archive(path, b"]" * 1001)


@pytest.mark.parametrize(
    "part, message",
    [
        (tensor(storage("0", 10), (11,), (1,)), r"\(11,\) and strides \(1,\) from 0"),
        (tensor(storage("0", 10), (2, 3), (4, 1), 4), "more than its storage of 10"),
        (tensor(storage("0", 10), (2**30, 2**20), (0, 0)), "more than its storage"),
        (tensor(storage("0", 10), (-1,), (1,)), "the shape of a tensor is"),
        (tensor(storage("0", 10), (1,), (-1,)), "size or stride"),
        (tensor(storage("0", 10), (1,), (1,), -1), "size or stride"),
        (tensor(storage("0", 10), (2, 5), (1,)), "has 1 strides"),
        (tensor(storage("0", 11), (2,), (1,)), "40 bytes for 11 values of f4"),
        (tensor(storage("0", 10, "DoubleStorage"), (2,), (1,)), "40 bytes for 10"),
        (tensor(storage("1", 10), (2,), (1,)), "entry data/1 is missing"),
        (tensor(storage("../0", 10), (2,), (1,)), "entry data/../0 is missing"),
        (tensor(storage("0", 10, "QInt8Storage"), (2,), (1,)), "torch.QInt8Storage"),
        (tensor(storage("0", -1), (2,), (1,)), "size or stride"),
        (tensor(b"N", (2,), (1,)), "NoneType in the place of a Storage"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tensor_outside_of_its_storage_is_refused(path, part, message):
    with at_most_allocated(2), pytest.raises(ValueError, match=message):
        of_archive(path, mapping({"a": part}))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "was not written by torch.save"),
        (b"hello", "was not written by torch.save"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (ARCHIVE[:-30], "list of entries is damaged"),
        (archive(STATE, STORED, b"middle"), "its byte order is b'middle'"),
        (
            archive(STATE, STORED, compression=zipfile.ZIP_DEFLATED),
            "data/0 is compressed or encrypted",
        ),
        (
            archive(STATE, STORED, more=[("b/data.pkl", pickle_of(STATE))]),
            "2 entries named data.pkl",
        ),
        (archive(STATE, STORED).replace(b"data.pkl", b"data.abc"), "0 entries named"),
        (SEQUENTIAL[:-1], "ends within its storage 7"),
        (SEQUENTIAL[:-48], "its storage 7 has another size"),
        (sequential(STATE, {}, keys=["8"]), "no tensor is a part of"),
        (sequential(STATE, {}), "its storage 0 is missing"),
        (sequential(STATE, {"0": (9, b"")}), "another size"),
        (sequential(STATE, {}, magic=integer(1)), "was not written by torch.save"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_file_is_refused(path, content, message):
    with at_most_allocated(2), pytest.raises(ValueError, match=message):
        read(path, content)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_of_the_same_name_are_refused(path):
    twice = archive(STATE, STORED, more=[("archive/data/0", b"other")])
    with pytest.raises(ValueError, match="the same name"):
        read(path, twice)


def test_a_view_of_a_storage_is_refused(path):
    parts = [text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu")]
    view = sequence([*parts, integer(10), sequence([text("1"), integer(0)])]) + b"Q"
    with pytest.raises(ValueError, match="storages have an unknown form"):
        read(path, sequential(mapping({"a": tensor(view, (2,), (1,))}), {}))


@pytest.mark.parametrize("content", [ARCHIVE, SEQUENTIAL], ids=["zip", "sequence"])
def test_any_damage_is_refused_or_harmless(shared_path, content):
    @settings(max_examples=150, deadline=None)
    @given(changed=damaged(content))
    def check(changed):
        with at_most_allocated(3):
            try:
                arrays = read(shared_path, changed)
                values = [arrays[name] for name in arrays]
            except ValueError:
                return
            for array in values:  # it is a part of the file, and no larger
                assert array.nbytes <= len(changed)

    check()


@pytest.mark.full
@pytest.mark.parametrize("content", [ARCHIVE, SEQUENTIAL], ids=["zip", "sequence"])
def test_pytorch_reads_what_is_made_by_hand_here(path, content):
    torch = pytest.importorskip("torch")
    path.write_bytes(content)
    np.testing.assert_array_equal(torch.load(path)["table"], EXPECTED)


@pytest.mark.full
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_state_dict_is_read_as_pytorch_reads_it(path, zipped, protocol):
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
def test_a_training_checkpoint_of_pytorch_is_read(path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 5)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    states = {"model_state_dict": model.state_dict(), "epoch": 3, "loss": 0.25}
    torch.save(states | {"optimizer": optimizer.state_dict()}, path)
    weight = model.weight.detach().numpy()
    np.testing.assert_array_equal(read_torch(path)["weight"], weight)


@pytest.mark.full
def test_a_whole_module_is_refused(path):
    torch = pytest.importorskip("torch")
    torch.save(torch.nn.Linear(3, 5), path)
    with pytest.raises(ValueError, match=r"holds torch\.nn\.modules\.linear\.Linear"):
        read_torch(path)


@pytest.mark.full
@settings(max_examples=300, deadline=None)
@given(
    dimensions=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=4),
    offset=st.integers(0, 11),
)
def test_a_tensor_is_the_part_that_pytorch_takes(shared_path, dimensions, offset):
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
def test_what_is_accepted_is_what_pytorch_reads(shared_path):
    """Where PyTorch takes a damaged file too; it refuses some that are harmless."""
    torch = pytest.importorskip("torch")
    compared = []

    @settings(max_examples=500, deadline=None)
    @given(changed=damaged(SEQUENTIAL))
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
