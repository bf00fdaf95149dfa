"""Safetensors files, which consist of a JSON header and the arrays that it lists."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.stored_arrays import (
    BFLOAT16,
    LazyArrays,
    StoredArray,
    checked_shape,
    item_size,
    read_shards,
    refuse_git_lfs_pointer,
    value_span,
)

FOR_TRANSFORMERS = {"format": "pt"}  # Transformers refuses files without it
_LONGEST_HEADER = 100_000_000  # bytes; the limit of the format
_ALIGNMENT = 8
_METADATA = "__metadata__"
_DTYPES = {  # of the format -> of NumPy
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": f"<{BFLOAT16}",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_DTYPE_NAMES = {numpy_name: name for name, numpy_name in _DTYPES.items()}


def read_safetensors(path: PathLike) -> LazyArrays:
    """Opens the arrays of a safetensors file, or of all files listed in an index.

    Only the header is read and checked at first; each array is read on demand. bfloat16
    becomes float32; other types are kept.

    Args:
        path: path of `model.safetensors`. If it does not exist, its index
            `model.safetensors.index.json` is read.
    Returns:
        Mapping of name -> array.
    Raises:
        OSError: if a file cannot be read.
        ValueError: if a file is truncated or damaged, contains an unknown type, or is
            not a safetensors file.
    """
    return read_shards(Path(path), _read_header)


def write_safetensors(
    path: PathLike,
    arrays: Mapping[str, np.ndarray],
    metadata: Mapping[str, str] = FOR_TRANSFORMERS,
) -> None:
    """Writes a safetensors file atomically; equal arrays result in equal bytes.

    Args:
        path: path of the file; an existing file is replaced.
        arrays: mapping of name -> array. It may create arrays on demand; each is
            accessed twice.
        metadata: dict of str -> str, stored in the header.
    Raises:
        OSError: if the file cannot be written; an existing file is then kept.
        ValueError: if the format does not support the type of an array.
    """
    # The largest types first, as in the reference writer, so that all are aligned.
    kinds = {name: _kind_of(name, arrays[name]) for name in arrays}
    names = sorted(kinds, key=lambda name: (-item_size(kinds[name][0]), name))
    header: dict[str, Any] = {_METADATA: dict(sorted(metadata.items()))}
    end = 0
    for name in names:
        dtype, shape = kinds[name]
        begin, end = end, end + value_span(shape) * item_size(dtype)
        header[name] = {
            "dtype": _DTYPE_NAMES[dtype],
            "shape": shape,
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with atomic_write(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            file.write(np.asarray(arrays[name], kinds[name][0], order="C").data)


def _kind_of(name, array):
    """Returns the dtype in a file, and the shape."""
    dtype = np.asarray(array).dtype
    little_endian = dtype.newbyteorder("<").str
    if name == _METADATA or little_endian not in _DTYPE_NAMES:
        raise ValueError(
            f"A safetensors file cannot hold an array named {name!r} of type {dtype}; "
            "convert it to float32."
        )
    return little_endian, list(np.shape(array))


def _read_header(path):
    """Returns the location of each array in a file."""
    refuse_git_lfs_pointer(path)
    size = path.stat().st_size
    try:
        with open(path, "rb") as file:
            if size < 8:
                raise ValueError(f"it has {size} bytes")
            length = int.from_bytes(file.read(8), "little")
            if length > size - 8:
                raise ValueError(
                    f"its header of {length} bytes is longer than the file"
                )
            if length > _LONGEST_HEADER:
                raise ValueError(f"its header of {length} bytes is too long")
            header = _parse(file.read(length))
        entries = {name: _entry(name, each) for name, each in header.items()}
        _check_ranges(entries, size - 8 - length)
    except (RecursionError, ValueError) as error:
        raise ValueError(
            f"{path} is not a safetensors file, or is damaged: {error}."
        ) from error
    return {
        name: StoredArray(path, 8 + length + begin, dtype, shape)
        for name, (dtype, shape, begin, _end) in entries.items()
    }


def _parse(header):
    """Returns the entries of a header that are arrays."""
    try:
        entries = json.loads(str(header, "utf-8"), object_pairs_hook=_distinct)
    except ValueError as error:
        raise ValueError(f"its header is not JSON ({error})") from error
    if not isinstance(entries, dict):
        raise ValueError("its header is not a JSON object")
    entries.pop(_METADATA, None)
    return entries


def _distinct(pairs):
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name occurs twice")
    return entries


def _entry(name, entry):
    """Returns the dtype, shape, start and end of an array, which must be consistent."""
    entry = entry if isinstance(entry, dict) else {}
    dtype = entry.get("dtype")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(f"{name[:200]!r} has the unknown type {str(dtype)[:80]!r}")
    dtype = _DTYPES[dtype]
    shape = checked_shape(repr(name[:200]), entry.get("shape"))
    offsets = entry.get("data_offsets")
    if (
        not isinstance(offsets, list)
        or len(offsets) != 2
        or any(type(offset) is not int for offset in offsets)
    ):
        raise ValueError(f"{name[:200]!r} has the range {str(offsets)[:80]}")
    begin, end = offsets
    if end - begin != value_span(shape) * item_size(dtype):
        raise ValueError(
            f"{name[:200]!r} has {end - begin} bytes for the shape {shape} of {dtype}"
        )
    return dtype, shape, begin, end


def _check_ranges(entries, size):
    """Refuses arrays that overlap, leave gaps, or do not end at the end of the file."""
    reached = 0
    for begin, end, name in sorted((e[2], e[3], name) for name, e in entries.items()):
        if begin != reached:
            raise ValueError(
                f"{name[:200]!r} begins at byte {begin} of the arrays, and {reached} "
                "was expected"
            )
        reached = end
    if reached != size:
        raise ValueError(f"its arrays need {reached} bytes, and {size} are there")
