"""CTranslate2's `model.bin`, a sequence of named variables and of their aliases.

All numbers are little-endian. A string is stored as its length and its bytes, the last
of which is 0.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from keras_vanilla.interop.files.stored_arrays import (
    BFLOAT16,
    LazyArrays,
    refuse_git_lfs_pointer,
)

_NEWEST = 6  # of CTranslate2 3 and 4
_OLDEST = 4  # of CTranslate2 1.3 to 2, used in the first Argos packages
_MOST_DIMENSIONS = 8
_DTYPES = [*map(np.dtype, ("<f4", "i1", "<i2", "<i4", "<f2")), BFLOAT16]  # by number
_BYTE, _SHORT, _INTEGER = struct.Struct("<B"), struct.Struct("<H"), struct.Struct("<I")


@dataclass(frozen=True)
class Binary:
    """The content of a `model.bin`.

    Args:
        version: int. Version of the format.
        spec: str. The architecture, such as "TransformerSpec".
        revision: int. Revision of the variables' names in this architecture.
        variables: mapping of name -> array.
        aliases: mapping of alias -> name of a variable.
    """

    version: int
    spec: str
    revision: int
    variables: Mapping[str, np.ndarray]
    aliases: Mapping[str, str]


def read_binary(path: Path) -> Binary:
    """Opens a `model.bin`; each variable is read on demand.

    Args:
        path: path of the file.
    Raises:
        OSError: if it cannot be read.
        ValueError: if it is truncated or damaged, or has another version.
    """
    refuse_git_lfs_pointer(path)
    try:
        with open(path, "rb") as file:
            return _Reader(path, file).binary()
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read as a CTranslate2 model: {error}."
        ) from error


def write_binary(file: BinaryIO, binary: Binary) -> None:
    """Writes a `model.bin` of the newest version, whatever `binary.version` is.

    Args:
        file: binary file.
        binary: Binary.
    Raises:
        ValueError: if the format does not support the type or size of a variable.
    """
    file.write(_INTEGER.pack(_NEWEST))
    _write_string(file, binary.spec)
    file.write(_INTEGER.pack(binary.revision))
    file.write(_INTEGER.pack(len(binary.variables)))
    for name in sorted(binary.variables):
        _write_variable(file, name, np.asarray(binary.variables[name]))
    file.write(_INTEGER.pack(len(binary.aliases)))
    for alias, name in sorted(binary.aliases.items()):
        _write_string(file, alias)
        _write_string(file, name)


def _write_variable(file, name, values):
    dtype = values.dtype
    if dtype not in _DTYPES or values.nbytes >= 2**32:
        raise ValueError(
            f"CTranslate2 has no variables of type {values.dtype} and {values.nbytes} "
            f"bytes. Received: {name}"
        )
    _write_string(file, name)
    file.write(_BYTE.pack(values.ndim))
    for size in values.shape:
        file.write(_INTEGER.pack(size))
    file.write(_BYTE.pack(_DTYPES.index(dtype)))
    file.write(_INTEGER.pack(values.nbytes))
    file.write(values.tobytes())


def _write_string(file, text):
    content = text.encode()
    file.write(_SHORT.pack(len(content) + 1) + content + b"\0")


class _Reader:
    """Reads the parts of a file in order, never beyond its end."""

    def __init__(self, path, file):
        self._path = path
        self._file = file
        self._size = path.stat().st_size

    def binary(self):
        version = self._integer()
        if not _OLDEST <= version <= _NEWEST:
            raise ValueError(
                f"its version is {version}, and only {_OLDEST} to {_NEWEST} can be "
                "read; convert the original model again with CTranslate2 4"
            )
        spec, revision = self._string(), self._integer()
        variables = self._distinct("variables", self._variable)
        aliases = self._distinct("aliases", self._alias)
        if self._file.tell() != self._size:
            raise ValueError(f"it continues after its end at {self._file.tell()} bytes")
        for alias, name in aliases.items():
            if alias in variables or name not in variables:
                raise ValueError(
                    f"it has the wrong alias {alias!r:.80} of {name!r:.80}"
                )
        return Binary(version, spec, revision, LazyArrays(variables), aliases)

    def _distinct(self, what, read):
        """Reads a counted sequence of named parts; each name must be unique."""
        count = self._integer()
        parts = dict(read() for _ in range(count))
        if len(parts) != count:
            raise ValueError(f"two of its {what} have the same name")
        return parts

    def _variable(self):
        name = self._string()
        rank = self._number(_BYTE)
        if rank > _MOST_DIMENSIONS:
            raise ValueError(f"{name!r:.200} has {rank} dimensions")
        shape = [self._integer() for _ in range(rank)]
        dtype_index = self._number(_BYTE)
        if dtype_index >= len(_DTYPES):
            raise ValueError(f"{name!r:.200} has the unknown type {dtype_index}")
        dtype, nbytes = _DTYPES[dtype_index], self._integer()
        count = math.prod(shape)
        if count * dtype.itemsize != nbytes or not nbytes:
            raise ValueError(
                f"{name!r:.200} has {nbytes} bytes for the shape {shape} of {dtype}"
            )
        begin = self._file.tell()
        if begin + nbytes > self._size:
            raise ValueError(f"it ends within {name!r:.200}")
        self._file.seek(begin + nbytes)
        return name, partial(_read, self._path, begin, dtype, shape)

    def _alias(self):
        return self._string(), self._string()

    def _string(self):
        content = self._take(self._number(_SHORT))
        if not content.endswith(b"\0"):
            raise ValueError("one of its names has no end")
        return str(content[:-1], "utf-8")

    def _integer(self):
        return self._number(_INTEGER)

    def _number(self, kind):
        return kind.unpack(self._take(kind.size))[0]

    def _take(self, count):
        content = self._file.read(count)
        if len(content) != count:
            raise ValueError(f"it ends too early, after {self._size} bytes")
        return content


def _read(path, begin, dtype, shape):
    values = np.fromfile(path, dtype, math.prod(shape), offset=begin).reshape(shape)
    return values.astype("float32") if dtype == BFLOAT16 else values
