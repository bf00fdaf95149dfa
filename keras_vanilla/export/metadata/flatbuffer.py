"""`.tflite` files as bytes and as tables, with a description and a checksum inside.

The last 32 bytes of a file are the SHA-256 of those before.
"""

import copy
import hashlib
import struct
from pathlib import Path

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla._types import PathLike
from keras_vanilla.export.metadata.description import Description

DESCRIPTION, CHECKSUM = "keras_vanilla", "keras_vanilla_sha256"  # names of entries
DIGEST_SIZE = hashlib.sha256().digest_size
IDENTIFIER = b"TFL3"  # bytes 4 to 8 of every .tflite file
ALIGNMENT = 16  # of a buffer's bytes: `force_align` in TensorFlow Lite's schema


def unpacked(content: bytes) -> schema.ModelT:
    """Returns the tables of a `.tflite` file as mutable objects.

    Args:
        content: bytes of a `.tflite` file. The buffers are views of these bytes.
    """
    return schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))


def packed(file: schema.ModelT, entries: dict[str, bytes] | None = None) -> bytes:
    """Returns the bytes of a `.tflite` file; equal vectors of numbers are shared.

    Every buffer is aligned to 16 bytes, as the schema requires; the converter aligns
    many to 4. The values of `entries` are written in order at the end of the file, so
    that a truncated file lacks them. If the size of the last value is a multiple of 16
    bytes, no padding follows it.

    Args:
        file: ModelT of TensorFlow Lite's schema; it is not modified.
        entries: dict or None. Additional metadata, name -> value.
    """
    file, entries = copy.copy(file), entries or {}
    file.buffers, file.metadata = list(file.buffers), list(file.metadata or [])
    values = [each.data for each in file.buffers if each.data is not None]
    builder = _Builder(sum(map(len, values)))
    for name, value in reversed(entries.items()):
        file.metadata.append(schema.MetadataT(name, len(file.buffers)))
        file.buffers.append(_FirstBuffer(builder, value))
    builder.Finish(file.Pack(builder), IDENTIFIER)
    return bytes(builder.Output())


class _Builder(flatbuffers.Builder):
    """Aligns buffers, unlike the schema's Python code, and shares equal vectors."""

    def __init__(self, size):
        super().__init__(size)
        self._vectors = {}

    def StartVector(self, element_size, count, alignment):
        alignment = ALIGNMENT if element_size == 1 else alignment
        return super().StartVector(element_size, count, alignment)

    def CreateNumpyVector(self, x):
        if x.itemsize == 1:  # a buffer's bytes; tensors share buffers already
            return super().CreateNumpyVector(x)
        key = x.dtype, x.tobytes()
        if key not in self._vectors:
            self._vectors[key] = super().CreateNumpyVector(x)
        return self._vectors[key]


class _FirstBuffer(schema.BufferT):
    """A buffer that is built first, because flatbuffers grow from their end."""

    def __init__(self, builder, value):
        super().__init__()
        self._offset = builder.CreateNumpyVector(np.frombuffer(value, np.uint8))

    def Pack(self, builder):
        schema.BufferStart(builder)
        schema.BufferAddData(builder, self._offset)
        return schema.BufferEnd(builder)


def read_metadata(path: PathLike, name: str) -> bytes | None:
    """Reads an entry of a `.tflite` file, and checks the file's checksum.

    Args:
        path: path of a `.tflite` file. A file without a checksum is accepted.
        name: str. Name of the entry.
    Returns:
        Bytes, or None if the file has no such entry.
    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a `.tflite` file, is truncated, or does not match its
            checksum.
    """
    content = Path(path).read_bytes()
    if content[4:8] != IDENTIFIER:
        raise ValueError(f"{path} is not a .tflite file.")
    if CHECKSUM.encode() in content:  # version 0.5.0 and earlier wrote none
        body = memoryview(content)[:-DIGEST_SIZE]
        if hashlib.sha256(body).digest() != content[-DIGEST_SIZE:]:
            raise ValueError(
                f"{path} is damaged or cut short: its bytes do not match its checksum. "
                "Copy or export it again."
            )
    try:
        model = schema.Model.GetRootAs(content, 0)
        for index in range(model.MetadataLength()):
            if model.Metadata(index).Name() == name.encode():
                buffer = model.Buffers(model.Metadata(index).Buffer())
                return bytes(buffer.DataAsNumpy())
    except (struct.error, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or cut short.") from error


def with_description(
    file: schema.ModelT,
    description: Description,
    entries: dict[str, bytes] | None = None,
) -> bytes:
    """Returns a `.tflite` file with a description, and with a checksum at its end.

    Args:
        file: ModelT, a file's tables, see `unpacked`.
        description: Description.
        entries: dict or None. Additional metadata, by name.
    Returns:
        Bytes, about a kilobyte more than without a description.
    """
    described = {DESCRIPTION: description.to_json(), **(entries or {})}
    content = packed(file, described | {CHECKSUM: bytes(DIGEST_SIZE)})
    body = memoryview(content)[:-DIGEST_SIZE]
    return b"".join([body, hashlib.sha256(body).digest()])


def read_description(path: PathLike) -> Description:
    """Reads the description of a `.tflite` file without TensorFlow and Keras.

    Args:
        path: path of a file that `tflite` wrote.
    Returns:
        Description.
    Raises:
        OSError: if `path` does not exist, or is a folder, such as a SavedModel.
        ValueError: if the file is not a `.tflite` file, is truncated, does not match
            its checksum, has no description, or has one in a format or a form that
            this version does not know.
    """
    content = read_metadata(path, DESCRIPTION)
    if content is None:
        raise ValueError(
            f"{path} has no description: keras_vanilla did not write it, or not as a "
            "file that translates text."
        )
    return Description.from_json(Path(path), content)


def sha256_of(path: PathLike) -> str:
    """Returns the SHA-256 of a file in hexadecimal, as `sha256sum` prints it.

    Args:
        path: path of a file.
    """
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
