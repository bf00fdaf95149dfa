"""Reads safetensors files."""

import functools
from pathlib import Path

from safetensors import SafetensorError, safe_open

from keras_vanilla._types import PathLike
from keras_vanilla.interop.files.stored_arrays import (
    BFLOAT16,
    LazyArrays,
    read_shards,
    refuse_git_lfs_pointer,
)


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
    return read_shards(Path(path), _read_file)


def _read_file(path):
    refuse_git_lfs_pointer(path)
    try:
        file = safe_open(path, framework="numpy")
    except SafetensorError as error:
        raise _damaged(path, error) from error
    return {name: functools.partial(_read, path, file, name) for name in file.keys()}


def _read(path, file, name):
    try:
        array = file.get_tensor(name)
    except AttributeError as error:  # NumPy lacks the type, such as float8
        raise ValueError(
            f"{path}: the type of {name} is not supported: {error}."
        ) from error
    except Exception as error:  # such as a type or a shape that NumPy lacks
        raise _damaged(path, error) from error
    return array.astype("float32") if array.dtype == BFLOAT16 else array


def _damaged(path, error):
    return ValueError(f"{path} is not a safetensors file, or is damaged: {error}.")
