"""Checks Keras archives, and makes their bytes depend on the model alone."""

import io
import json
import zipfile
from pathlib import Path

import h5py
import numpy as np

from keras_vanilla.pretrained import model_not_found

LARGEST_CONFIG = 2**24  # bytes; Keras reads it as a whole, and into many objects
NO_DATE = "1980-01-01@00:00:00"  # as the entries of the zip have
MOST_TIMES = 20  # largest unpacked size, as a multiple of the archive's size


def check_unpacked_size(archive: zipfile.ZipFile, most: int) -> None:
    """Refuses a zip that would fill the memory or the disk.

    Args:
        archive: ZipFile.
        most: int. Most bytes that it may unpack to.
    Raises:
        ValueError: if it would unpack to more.
    """
    parts = archive.infolist()
    size = sum(max(part.file_size, part.compress_size) for part in parts)
    if size > most:
        raise ValueError(f"its {len(parts)} parts would unpack to {size:,} bytes")


def most_unpacked(path: Path) -> int:
    """Most bytes that a compressed zip of translators may unpack to."""
    return MOST_TIMES * path.stat().st_size + LARGEST_CONFIG


def check_archive(path: Path) -> None:
    """Refuses a file that is not a Keras archive, or that would fill the memory.

    Args:
        path: Path of a `.keras` file.
    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is not a Keras archive, is truncated, or unpacks to far more
            than its size.
    """
    if not path.is_file():
        raise model_not_found(path)
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked_size(archive, most_unpacked(path))
            sizes = {part.filename: part.file_size for part in archive.infolist()}
    except Exception as error:  # zipfile raises many kinds for damaged files
        if _is_tflite(path):
            raise ValueError(
                f"{path} is an exported .tflite file. Expected the .keras file it was "
                "exported from; `keras-vanilla translate` and `evaluate` take both."
            ) from error
        raise ValueError(
            f"{path} is not a Keras archive, or is damaged or cut short: {error}."
        ) from error
    if "config.json" not in sizes:
        raise ValueError(f"{path} is not a Keras archive: it has no config.json.")
    for name, size in sizes.items():
        if name.endswith(".json") and size > LARGEST_CONFIG:
            raise ValueError(
                f"{path} is not a translator's archive: its {name} has {size:,} bytes."
            )


def rewrite_archive(path: Path, rounds: bool = False) -> None:
    """Removes the times from a Keras archive, so that its bytes are the same again.

    With `rounds`, float32 matrices are also rounded to 8 bits, which makes the archive
    about five times smaller; vectors (biases, normalizations) are not. HDF5 supports
    custom float types and converts them when they are read. The type used here has so
    few exponent bits that numbers are evenly spaced, by at most a tenth of the matrix's
    standard deviation, and twice as far apart from the 64th number on.

    Args:
        path: Path of a `.keras` file, which is overwritten; Keras still reads it.
        rounds: bool.
    """
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    metadata = json.loads(parts["metadata.json"])
    parts["metadata.json"] = json.dumps(metadata | {"date_saved": NO_DATE}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            if rounds and name.endswith(".weights.h5"):
                content = _rounded(content)
            method = zipfile.ZIP_DEFLATED if rounds else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name), content, method)


def _rounded(content):
    """Rewrites an HDF5 file with 8 bits per number in its matrices; returns bytes."""
    smaller = io.BytesIO()
    with h5py.File(io.BytesIO(content)) as old, h5py.File(smaller, "w") as new:

        def copy(name, item):
            if isinstance(item, h5py.Group):
                copied = new.require_group(name)
            else:
                values = item[()]
                step = _step(values)
                if step is None:
                    copied = new.create_dataset(name, data=values)
                else:
                    copied = _write_matrix(new, name, values, step)
            copied.attrs.update(item.attrs)

        new.attrs.update(old.attrs)
        old.visititems(copy)
    return smaller.getvalue()


def _step(values):
    """The binary logarithm of the spacing of numbers; None means no rounding."""
    if values.dtype != np.float32 or values.ndim < 2 or not values.any():
        return None
    # A power of two, at most a tenth of the deviation; 126 reach the largest number.
    narrowest = max(values.std() / 20, np.abs(values).max() / 126)
    step = int(np.ceil(np.log2(narrowest)))
    if np.array_equal(_rounded_to(values, step - 1), values):
        step -= 1  # rounding raises the deviation; rounding again must change nothing
    return step if step < -4 else None  # the bias of exponents is positive


def _rounded_to(values, step):
    steps = values / np.float32(2.0**step)
    steps = np.where(np.abs(steps) < 64, np.round(steps), 2 * np.round(steps / 2))
    return np.clip(steps, -126, 126) * np.float32(2.0**step)


def _write_matrix(file, name, values, step):
    kind = h5py.h5t.IEEE_F32LE.copy()
    # Positions of the sign and the exponent, 2 exponent bits, 5 mantissa bits.
    kind.set_fields(7, 5, 2, 0, 5)
    kind.set_size(1)
    kind.set_ebias(-4 - step)
    compressed = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compressed.set_chunk(values.shape)
    compressed.set_deflate(9)
    compressed.set_obj_track_times(False)
    space = h5py.h5s.create_simple(values.shape)
    stored = h5py.h5d.create(file.id, name.encode(), kind, space, compressed)
    dataset = h5py.Dataset(stored)
    dataset[...] = _rounded_to(values, step)
    return dataset


def _is_tflite(path):
    with open(path, "rb") as file:
        return file.read(8)[4:] == b"TFL3"
