"""Files as `torch.save` writes them, made by hand from the operations of a pickle."""

import io
import struct
import zipfile

import numpy as np

MAGIC_NUMBER = b"\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little")


def pickle_of(value):
    """A pickle whose value is made by the operations in `value`."""
    return b"\x80\x02" + value + b"."


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def integer(value):
    return b"J" + struct.pack("<i", value)


def text(value):
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def sequence(values):
    return b"(" + b"".join(values) + b"t"


def call(function, *arguments):
    return function + sequence(arguments) + b"R"


def mapping(values):
    """A dict of str -> operations."""
    pairs = [text(key) + value for key, value in values.items()]
    return b"}(" + b"".join(pairs) + b"u"


def ordered(values):
    """An OrderedDict with the attribute that PyTorch gives a state dict."""
    empty = call(name("collections", "OrderedDict"))
    pairs = b"".join(text(key) + value for key, value in values.items())
    return empty + b"(" + pairs + b"u" + mapping({"_metadata": empty}) + b"b"


def storage(key, size, kind="FloatStorage", legacy=False):
    parts = [text("storage"), name("torch", kind), text(key), text("cpu")]
    view = [b"N"] if legacy else []
    return sequence([*parts, integer(size), *view]) + b"Q"


def tensor(storage, shape, strides, offset=0):
    sizes, steps = (sequence(map(integer, each)) for each in (shape, strides))
    rebuild = name("torch._utils", "_rebuild_tensor_v2")
    hooks = call(name("collections", "OrderedDict"))
    return call(rebuild, storage, integer(offset), sizes, steps, b"\x89", hooks)


def archive(value, storages, order=b"little", compression=zipfile.ZIP_STORED, more=()):
    """A file of PyTorch 1.6 and later.

    Args:
        value: operations of the value.
        storages: dict of key -> bytes.
        order: byte order, or None for a file without it.
        compression: of the storages.
        more: pairs of more entries.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as entries:
        entries.writestr("archive/data.pkl", pickle_of(value))
        entries.writestr("archive/version", "3\n")
        if order is not None:
            entries.writestr("archive/byteorder", order)
        for key, content in storages.items():
            entries.writestr(f"archive/data/{key}", content, compression)
        for each in more:
            entries.writestr(*each)
    return file.getvalue()


def sequential(value, storages, keys=None, magic=MAGIC_NUMBER):
    """A file of PyTorch 1.5 and earlier.

    Args:
        value: operations of the value.
        storages: dict of key -> pair of a number of values and their bytes.
        keys: list of the keys in the file; None means those of `storages`.
        magic: operations of the number at the beginning.
    """
    keys = list(storages) if keys is None else keys
    listed = b"](" + b"".join(map(text, keys)) + b"e"
    pickles = [magic, integer(1001), mapping({}), value, listed]
    contents = [struct.pack("<q", n) + data for n, data in storages.values()]
    return b"".join([*map(pickle_of, pickles), *contents])


NUMBERS = np.arange(10, dtype="<f4")
STORED = {"0": NUMBERS.tobytes()}
TABLE = tensor(storage("0", 10), (2, 3), (3, 1), offset=2)
ZIP = archive(ordered({"table": TABLE}), STORED)
SEQUENCE = sequential(
    ordered({"table": tensor(storage("7", 10, legacy=True), (2, 3), (3, 1), 2)}),
    {"7": (10, NUMBERS.tobytes())},
)
