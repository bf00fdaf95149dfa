"""Converts `.tflite` files between bytes and tables, and reads their metadata."""

import copy
import mmap
import struct

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from keras_vanilla._types import PathLike

IDENTIFIER = b"TFL3"  # bytes 4 to 8 of every .tflite file
ALIGNMENT = 16  # of a buffer's bytes: `force_align` in TensorFlow Lite's schema


def unpacked(content: bytes) -> schema.ModelT:
    """Returns the tables of a `.tflite` file as mutable objects.

    Args:
        content: bytes of a `.tflite` file. The buffers are views of these bytes.
    Raises:
        ValueError: if it is not a `.tflite` file.
    """
    if content[4:8] != IDENTIFIER:
        raise ValueError(f"This is not a .tflite file. Received: {content[:8]!r}")
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
    Raises:
        ValueError: if the file already has an entry of one of these names.
    """
    file, entries = copy.copy(file), entries or {}
    file.buffers, file.metadata = list(file.buffers), list(file.metadata or [])
    for name in entries:
        if name.encode() in [entry.name for entry in file.metadata]:
            raise ValueError(f"The file has metadata with the name {name!r} already.")
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
    """Reads the bytes of an entry; only a few pages of a large file are accessed.

    Args:
        path: path of a `.tflite` file.
        name: str. Name of the entry.
    Returns:
        Bytes, or None if the file has no such entry.
    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is not a `.tflite` file, or is truncated.
    """
    with open(path, "rb") as file:
        if file.read(8)[4:] != IDENTIFIER:
            raise ValueError(f"{path} is not a .tflite file.")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        value, size = _find(content, name)
    except (struct.error, TypeError, AttributeError) as error:  # a wrong offset
        raise ValueError(f"{path} is damaged or cut short.") from error
    if value is not None and len(value) < size:
        raise ValueError(f"{path} is cut short.")
    return value


def _find(content, name):
    """Returns an entry's bytes, as far as the file has them, and their full number."""
    model = schema.Model.GetRootAs(content, 0)
    for index in range(model.MetadataLength()):
        entry = model.Metadata(index)
        if entry.Name() == name.encode():
            buffer = model.Buffers(entry.Buffer())._tab
            data = buffer.Offset(4)  # offset of the field in the schema
            begin, size = buffer.Vector(data), buffer.VectorLen(data)
            return content[begin : begin + size], size
    return None, 0
