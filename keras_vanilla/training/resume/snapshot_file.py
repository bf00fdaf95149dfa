"""One `.npz` file of nested values: what is read is what was written, or an error."""

import contextlib
import errno
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_vanilla._atomic_write import atomic_write
from keras_vanilla._checks import first_line
from keras_vanilla.training.resume.separate_arrays import SeparateArrays


class Damaged(ValueError):
    """A file was cut short or changed."""


def write_file(path: Path, value: Any, file_of: Callable | None = None) -> None:
    """Writes nested dicts and lists of arrays, numbers, texts and None.

    The arrays, whose parts carry checksums, lie beside "state": JSON in UTF-8 in which
    `{"array": name}` stands for an array. The bytes are on disk before the file gets
    its name, in one `os.replace`.

    Args:
        path: path of the file.
        value: what to write.
        file_of: function that writes `SeparateArrays` and returns their file's name.
    Raises:
        OSError: if it cannot be written; what had the name before keeps it.
    """
    arrays = {}
    state = json.dumps(_packed(value, arrays, file_of)).encode()
    with atomic_write(path) as file:
        np.savez(file, state=np.frombuffer(state, np.uint8), **arrays)


def read_file(path: Path) -> Any:
    """What `write_file` has written; `SeparateArrays` from their files beside it.

    Raises:
        Damaged: if the file, or one that it refers to, was cut short or changed.
        OSError: if it cannot be read for another reason.
    """
    with _opened(path) as file:
        arrays = {name: file[name] for name in file.files}
        return _unpacked(_json(arrays["state"]), arrays, path.parent)


def files_referred_to(path: Path) -> set[str]:
    """The names of the files of `SeparateArrays` that a file refers to.

    Raises:
        Damaged: if the file was cut short or changed.
        OSError: if it cannot be read for another reason.
    """
    with _opened(path, check=False) as file:
        return set(_references(_json(file["state"])))


@contextlib.contextmanager
def _opened(path, check=True):
    """The file as NumPy reads it, after its checksums are compared."""
    try:
        if check:
            _check(path)
        with np.load(path, allow_pickle=False) as file:
            yield file
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        RuntimeError,  # "encrypted"
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise Damaged(first_line(error)) from error


def _check(path):
    """Compares the checksums: later, a lack of memory is one, and not a wrong shape."""
    try:
        with zipfile.ZipFile(path) as file:
            damaged = file.testzip()
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        damaged = "its index"  # which points to before the file
    if damaged:
        raise Damaged(f"{damaged} does not have its checksum")


def _json(state):
    return json.loads(state.tobytes())


def _references(value):
    if isinstance(value, list):
        for each in value:
            yield from _references(each)
    elif isinstance(value, dict) and "file" in value:
        yield value["file"]
    elif isinstance(value, dict) and "dict" in value:
        yield from _references(list(value["dict"].values()))


def _packed(value, arrays, file_of):
    """The value with every array, and what JSON would change, put among `arrays`."""
    if isinstance(value, dict):
        named = {key: _packed(each, arrays, file_of) for key, each in value.items()}
        return {"dict": named}
    if isinstance(value, SeparateArrays) and file_of:
        return {"file": file_of(value), "digest": value.digest}
    if isinstance(value, (list, tuple)):
        return [_packed(each, arrays, file_of) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        name = f"array-{len(arrays)}"
        # NumPy cannot write bfloat16: its bytes are kept, the type by name.
        arrays[name] = np.ascontiguousarray(value).view(_plain(value.dtype))
        return {"array": name, "dtype": value.dtype.name, "shape": value.shape}
    return value


def _unpacked(value, arrays, folder):
    if isinstance(value, list):
        return [_unpacked(each, arrays, folder) for each in value]
    if not isinstance(value, dict):
        return value
    if "dict" in value:
        items = value["dict"].items()
        return {name: _unpacked(each, arrays, folder) for name, each in items}
    if "file" in value:
        return _separate_arrays(folder / value["file"], value["digest"])
    array = arrays[value["array"]].view(_dtype(value["dtype"]))
    return array.reshape(value["shape"])[()]  # a scalar, if it was one


def _separate_arrays(path, digest):
    try:
        arrays = SeparateArrays(read_file(path))
    except FileNotFoundError as error:
        raise Damaged(f"{path.name} is missing") from error
    except Damaged as error:
        raise Damaged(f"{path.name} is damaged: {error}") from error
    if arrays.digest != digest:
        raise Damaged(f"{path.name} holds other values")
    return arrays


def _plain(dtype):
    return dtype if dtype.kind in "biufc" else np.dtype(f"u{dtype.itemsize}")


def _dtype(name):
    import ml_dtypes  # Keras brings it; it names bfloat16 for NumPy

    return np.dtype(getattr(ml_dtypes, name, name))
