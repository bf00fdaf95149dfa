"""CTranslate2's model folders, made by hand."""

import json
import struct

import numpy as np

DTYPES = ["float32", "int8", "int16", "int32", "float16"]  # by CTranslate2's numbers
TOKENS = ["<unk>", "<s>", "</s>", "\u2581a", "b\u2028"]
CONFIG = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
VARIABLES = {
    "decoder/projection/weight": np.arange(6, dtype="float32").reshape(2, 3),
    "encoder/layer_0/weight": np.array([[-127, 3], [0, 5]], "int8"),
    "encoder/layer_0/weight_scale": np.array([2, 7], "float32"),
    "encoder/num_heads": np.array(4, "int16"),
}
ALIASES = {"encoder/embeddings_0/weight": "decoder/projection/weight"}


def string(text):
    content = text if isinstance(text, bytes) else text.encode() + b"\0"
    return struct.pack("<H", len(content)) + content


def variable(name, array, number=None, nbytes=None):
    number = DTYPES.index(str(array.dtype)) if number is None else number
    nbytes = array.nbytes if nbytes is None else nbytes
    shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
    return string(name) + shape + struct.pack("<BI", number, nbytes) + array.tobytes()


def binary(
    variables=VARIABLES,
    aliases=ALIASES,
    version=6,
    spec="TransformerSpec",
    revision=7,
    count=None,
):
    """A model.bin; `variables` may also be a list of their bytes."""
    if isinstance(variables, dict):
        variables = [variable(*each) for each in variables.items()]
    names = [string(alias) + string(name) for alias, name in aliases.items()]
    count = len(variables) if count is None else count
    header = struct.pack("<I", version) + string(spec)
    header += struct.pack("<II", revision, count)
    return header + b"".join([*variables, struct.pack("<I", len(names)), *names])


def write(folder, content=None, config=CONFIG, **vocabularies):
    """A model folder; `vocabularies` are the lists of tokens by their names."""
    folder.mkdir(exist_ok=True)
    (folder / "model.bin").write_bytes(binary() if content is None else content)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    for name, tokens in (vocabularies or {"shared": TOKENS}).items():
        (folder / f"{name}_vocabulary.json").write_text(json.dumps(tokens))
    return folder
