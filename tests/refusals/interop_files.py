"""Checkpoint files that are damaged, foreign, or would fill the memory."""

import json
import struct
import zipfile

import numpy as np
from ctranslate2_bytes import CONFIG, TOKENS, binary, string, variable, write
from damaged_bytes import at_most_allocated
from refusal import Refusal
from safetensors.numpy import save
from torch_bytes import (
    MAGIC_NUMBER,
    SEQUENCE,
    STORED,
    TABLE,
    archive,
    integer,
    mapping,
    name,
    pickle_of,
    sequence,
    sequential,
    storage,
    tensor,
    text,
)

from keras_vanilla.interop.files.ctranslate2_file import (
    CTranslate2Model,
    read_ctranslate2,
    write_ctranslate2,
)
from keras_vanilla.interop.files.json_file import read_json_object, read_text
from keras_vanilla.interop.files.stored_arrays import read_safetensors
from keras_vanilla.interop.files.torch_file import read_torch

COMPLETE = (
    "interop/files/torch_file.py",
    "interop/files/stored_arrays.py",
    "interop/files/json_file.py",
    "interop/files/ctranslate2_binary.py",
    "interop/files/ctranslate2_file.py",
)
LFS = b"version https://git-lfs.github.com/spec/v1\n"


def reads(read, content, file="file"):
    """Reads a file with this content, of which nothing large is allocated."""

    def call(tmp_path):
        (tmp_path / file).write_bytes(content)
        with at_most_allocated(2):
            return dict(read(tmp_path / file))

    return call


def torch(content):
    return reads(read_torch, content, "pytorch_model.bin")


def pickled(value):
    """A checkpoint with ten numbers whose pickle has these operations."""
    return torch(archive(value, STORED))


def a_tensor(*arguments):
    return pickled(mapping({"a": tensor(*arguments)}))


ZERO = storage("0", 10)
OF_ZERO = mapping({"table": TABLE})
NESTED = b"]q\x01" + b"0](h\x01h\x01eq\x01" * 60  # written out, it has no end
VIEW = [text("storage"), name("torch", "FloatStorage"), text("0"), text("cpu")]
VIEW = sequence([*VIEW, integer(10), sequence([text("1"), integer(0)])]) + b"Q"
PICKLES = {  # -> what the error names
    r"argparse\.Namespace.*torch\.save\(model": name("argparse", "Namespace"),
    r"os\.system": b"(I1\nios\nsystem\n",
    r"collections\.OrderedDict\.__init__": b"\x8c\x0bcollections\x8c\x14OrderedDict."
    b"__init__\x93",
    "it has no state dict": integer(1),
    "its a is of type int": mapping({"a": integer(1)}),
    "its 1 is of type int": mapping({"a": TABLE}) + integer(1) + integer(2) + b"s",
    "storage 0 has 1073741824 values": storage("0", 2**30),
    # What Python would crash at, or allocate for.
    "has too many values": b"}N" + b"\x85" * 200_000 + b"Ns",
    "is damaged, or has": b"}r\xff\xff\xff\x0f",
    "1099511627776": b"\x96" + (2**40).to_bytes(8, "little"),
}
TENSORS = {
    r"shape \(11,\) is larger": (ZERO, (11,), (1,)),
    r"shape \(2, 3\) is larger": (ZERO, (2, 3), (4, 1), 4),
    "1048576.* is larger": (ZERO, (2**30, 2**20), (0, 0)),
    "not a whole number": (ZERO, (-1,), (1,)),
    "40 bytes for 11 values of float32": (storage("0", 11), (2,), (1,)),
    r"no item named 'archive/data/\.\./0'": (storage("../0", 10), (2,), (1,)),
    r"torch\.QInt8Storage": (storage("0", 10, "QInt8Storage"), (2,), (1,)),
}
TORCH_FILES = {
    "cannot be read as PyTorch weights": b"",
    "exhausted before seeing STOP": b"hello",
    "git lfs pull": LFS,
    r"has no data\.pkl": archive(OF_ZERO, {}).replace(b"data.pkl", b"data.abc"),
    r"data\.pkl, several": archive(
        OF_ZERO, STORED, more=[("b/data.pkl", pickle_of(OF_ZERO))]
    ),
    "too large": archive(b"]" * 2**22, {}),
    "would unpack to": archive(
        OF_ZERO, {"0": bytes(3000)}, compression=zipfile.ZIP_DEFLATED
    ),
    "storage 7 has 39 bytes": SEQUENCE[:-1],
    "storage 7 has another size": SEQUENCE[:-48],
    r"storages are \['0'\], not \['8'\]": sequential(OF_ZERO, {}, keys=["8"]),
    "storage 0 has another size": sequential(OF_ZERO, {"0": (9, bytes(99))}),
    "little-endian": archive(OF_ZERO, STORED, b"big"),
    "not written by torch.save": sequential(OF_ZERO, {}, magic=integer(1)),
    "unknown form": sequential(mapping({"a": tensor(VIEW, (2,), (1,))}), {}),
    "PyTorch weights: ": pickle_of(MAGIC_NUMBER) + pickle_of(NESTED),
}


def safetensors(header, data=b""):
    """A file by the words of the format's description."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = len(header).to_bytes(8, "little") + header + data
    return reads(read_safetensors, content, "model.safetensors")


def entry(begin, end, shape, dtype="F32"):
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}}


SAFETENSORS = {
    "longer than the file": reads(read_safetensors, b"\xff" * 8 + b"{}"),
    "not JSON": safetensors(b"not JSON"),
    "deeply nested": safetensors(b"[" * 100_000),
    "negative size": safetensors(entry(0, 4, [-1]), b"1234"),
    "100 dimensions": safetensors(entry(0, 4, [1] * 100), b"1234"),
    "impossible shape": safetensors(entry(0, 0, [0, *[2**30] * 4])),
    "larger than the file": safetensors(entry(0, 2**57, [2**27, 2**28])),
}


def index(weight_map):
    """A checkpoint in two files with this index."""

    def call(tmp_path):
        for key, file in {"a": "1.safetensors", "b": "2.safetensors"}.items():
            (tmp_path / file).write_bytes(save({key: np.zeros(3, "float32")}))
        path = tmp_path / "model.safetensors.index.json"
        path.write_text(json.dumps(weight_map))
        return read_safetensors(tmp_path / "model.safetensors")

    return call


INDEXES = {
    "in another folder: '../1": {"weight_map": {"a": "../1.safetensors"}},
    "index.json is not the index": {"weight_map": {"a": 1}},
    "is not the index": [],
    "index of its checkpoint lack 'b'": {
        "weight_map": {"a": "1.safetensors", "c": "2.safetensors"}
    },
    "files of its checkpoint lack 'c'": {
        "weight_map": {"a": "1.safetensors", "c": "1.safetensors"}
    },
}


def ctranslate2(content=None, changes=None, config=CONFIG, **vocabularies):
    """A model folder with this `model.bin`, in which some files are changed."""

    def call(tmp_path):
        folder = write(tmp_path / "model", content, config, **vocabularies)
        for file, each in (changes or {}).items():
            (folder / file).unlink(missing_ok=True)
            if each is not None:
                (folder / file).write_bytes(each)
        with at_most_allocated(2):
            return read_ctranslate2(folder)

    return call


def one(*parts):
    return binary([b"".join(parts)], {}, count=1)


ONE = [variable("a", np.zeros(3, "float32"))]
BINARIES = {
    "ends too early, after 0 bytes": b"",
    "ends within 'decoder/projection/weight'": binary()[:80],
    "continues after its end": binary() + b"\0",
    "version is 3, and only 4 to 6": binary(version=3),
    "TransformerSpec.* Received: 'WhisperSpec'": binary(spec="WhisperSpec"),
    "the revision 2": binary(revision=2),
    "CTranslate2 model: ": binary(count=2**32 - 1),
    "two of its variables have the same name": binary(ONE * 2, {}),
    "the wrong alias 'a' of 'a'": binary(ONE, {"a": "a"}),
    "the wrong alias 'b' of 'c'": binary(ONE, {"b": "c"}),
    "unknown type 6": one(variable("a", np.zeros(3, "int8"), number=6)),
    "'a' has 0 bytes": one(variable("a", np.zeros((0, 3), "int8"))),
    "'a' has 33 dimensions": one(variable("a", np.zeros([1] * 33, "int8"))),
    "one of its names has no end": one(string(b"")),
    "can't decode": one(string(b"\xff\0")),
    "git lfs pull": LFS,
    "'a' has 4294967292 bytes": one(
        string("a"), struct.pack("<BIBI", 1, 2**30, 0, 2**32 - 4)
    ),
    "ends within 'a'": one(string("a"), struct.pack("<BIBI", 1, 2**29, 0, 2**31)),
}
BESIDE = {
    "config.json is not JSON": {"config.json": b"{"},
    "config.json is not the configuration": {"config.json": b"[]"},
    "quantised by AWQ": {
        "config.json": json.dumps(CONFIG | {"quantization_type": 1}).encode()
    },
    "vocabulary.json is not JSON": {"shared_vocabulary.json": b"\xff"},
    "not a list of tokens": {"shared_vocabulary.json": b"{}"},
    "shared_vocabulary.txt is not UTF-8": {
        "shared_vocabulary.json": None,
        "shared_vocabulary.txt": b"a\n\xff\n",
    },
}
MISSING = {
    "model.bin": "model.bin",
    "config.json": "config.json",
    "source_vocabulary.json": "nor source_vocabulary.json",
    "target_vocabulary.json": "nor target_vocabulary.json",
}
SCALES = [
    (np.zeros((2, 3), "int8"), None),
    *(
        (np.zeros((2, 3), "int8"), np.array(scales, "float32"))
        for scales in ([1, 1, 1], [1, 0], [1, -1], [1, np.nan], [1, 1e-45])
    ),
    (np.zeros((2, 3), "int16"), np.ones(2, "float32")),
    (np.array(3, "int8"), np.ones(2, "float32")),
]


def dequantised(values, scales):
    def call(tmp_path):
        stored = {"a/weight": values}
        stored |= {} if scales is None else {"a/weight_scale": scales}
        model = read_ctranslate2(write(tmp_path / "model", binary(stored, {})))
        return model.weights("a/weight")

    return call


def written(variables, files=None):
    model = CTranslate2Model(variables, {}, CONFIG, TOKENS, TOKENS)
    return lambda tmp_path: write_ctranslate2(tmp_path / "new", model, files or {})


def attribute(tmp_path):
    model = read_ctranslate2(write(tmp_path / "model"))
    return model.attribute("encoder/embeddings_0/weight", None)


def old_token(token):
    return ctranslate2(binary({"eos_token": token}, {}, version=5), config=None)


ROWS = [
    *(Refusal(each, pickled(value), each) for each, value in PICKLES.items()),
    *(Refusal(each, a_tensor(*values), each) for each, values in TENSORS.items()),
    *(Refusal(each, torch(content), each) for each, content in TORCH_FILES.items()),
    *(
        Refusal(each, call, r"(model.safetensors|file)(: a cannot| .*damaged: )")
        for each, call in SAFETENSORS.items()
    ),
    Refusal(
        "type that NumPy lacks",
        safetensors(entry(0, 4, [4], "F8_E4M3"), b"1234"),
        "model.safetensors: a cannot.*float8",
    ),
    *(Refusal(each, index(value), each) for each, value in INDEXES.items()),
    Refusal(
        "missing shard",
        index({"weight_map": {"a": "3.safetensors"}}),
        "3.safetensors",
        FileNotFoundError,
    ),
    Refusal(
        "missing file",
        lambda tmp_path: read_safetensors(tmp_path / "model.safetensors"),
        "model.safetensors",
        FileNotFoundError,
    ),
    *(Refusal(each, ctranslate2(content), each) for each, content in BINARIES.items()),
    *(Refusal(each, ctranslate2(None, files), each) for each, files in BESIDE.items()),
    *(
        Refusal(
            f"no {file}",
            ctranslate2(None, {file: None}, source=TOKENS, target=TOKENS),
            each,
            FileNotFoundError,
        )
        for file, each in MISSING.items()
    ),
    *(
        Refusal(f"scales {scales}", dequantised(values, scales), "'a/weight' .*scales")
        for values, scales in SCALES
    ),
    Refusal("attribute of two rows", attribute, r"its shape is \(2, 3\)"),
    Refusal("token not UTF-8", old_token(np.array([-1], "int8")), "eos_token is not"),
    Refusal(
        "old configuration is a list",
        ctranslate2(binary(version=5), config=[]),
        "config.json is not the",
    ),
    Refusal(
        "float64 written", written({"a": np.zeros(3)}), "float64 and 24.*Received: a"
    ),
    Refusal(
        "file replaced",
        written({}, {"config.json": b""}),
        "config.json",
        FileExistsError,
    ),
    Refusal(
        "folder exists",
        lambda tmp_path: written({})(write(tmp_path / "new").parent),
        "new exists already",
        FileExistsError,
    ),
    Refusal("list for an object", reads(read_json_object, b"[]"), "object.*list"),
    Refusal("text not UTF-8", reads(read_text, b"\xff"), "file is not UTF-8"),
]
