"""NumPy's `.npz` files, whose arrays are read on demand."""

import contextlib
import math
import struct
import zipfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np

from keras_vanilla.interop.files.stored_arrays import (
    LazyArrays,
    checked_shape,
    refuse_git_lfs_pointer,
)

_SUFFIX = ".npy"
_METHODS = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
_LARGEST_RATIO = 1100  # of unpacked to packed bytes; deflate's limit is 1032
_NUMBERS = "fiu"  # floats, signed and unsigned integers
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_DAMAGED = (
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,  # an encrypted entry
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class NpzArrays(LazyArrays):
    """The arrays of numbers in an `.npz` file, read on demand.

    Pickled objects are never read. When the file is opened, the sizes of all arrays are
    checked against its size.

    Args:
        path: path of the file.
    Attributes:
        shapes, dtypes: dicts of name -> shape and type, from the arrays' headers.
    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a complete `.npz` file of numbers.
    """

    def __init__(self, path: Path) -> None:
        refuse_git_lfs_pointer(path)
        with _opened(path) as archive:
            entries = archive.infolist()
            if sum(entry.compress_size for entry in entries) > path.stat().st_size:
                raise ValueError("its entries are larger than the file")
            headers = {
                entry.filename.removesuffix(_SUFFIX): _header(archive, entry)
                for entry in entries
            }
            if len(headers) != len(entries):
                raise ValueError("two of its entries have the same name")
        self.shapes = {name: shape for name, (shape, _) in headers.items()}
        self.dtypes = {name: dtype for name, (_, dtype) in headers.items()}
        super().__init__({name: partial(_read, path, name) for name in headers})


def _read(path, name):
    with _opened(path) as archive, archive.open(name + _SUFFIX) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


@contextlib.contextmanager
def _opened(path):
    """Opens the zip file; describes an error in one sentence."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _DAMAGED as error:
        raise ValueError(
            f"{path} cannot be read as an .npz file: {str(error).rstrip('.')[:200]}."
        ) from error


def _header(archive, entry):
    """Reads an array's shape and type, which must match the size of its entry."""
    name = repr(entry.filename)[:80]
    if not entry.filename.endswith(_SUFFIX):
        raise ValueError(f"its entry {name} is not an array")
    if entry.compress_type not in _METHODS:
        raise ValueError(f"its entry {name} is compressed by an unknown method")
    if entry.file_size > _LARGEST_RATIO * entry.compress_size:
        raise ValueError(f"its entry {name} cannot have {entry.file_size} bytes")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"its entry {name} has the version {version}")
        shape, _fortran_order, dtype = _HEADERS[version](file)
        begin = file.tell()
    if dtype.kind not in _NUMBERS:
        raise ValueError(f"its entry {name} has {dtype} instead of numbers")
    shape = checked_shape(name, shape)
    if begin + math.prod(shape) * dtype.itemsize != entry.file_size:
        raise ValueError(
            f"its entry {name} has {entry.file_size} bytes, which is not the size of "
            f"an array of {dtype} of shape {shape}"
        )
    return shape, dtype
