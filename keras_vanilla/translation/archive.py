"""A Keras archive: looked at before Keras reads it, and made smaller."""

import io
import zipfile
from pathlib import Path

import h5py
import numpy as np

LARGEST_CONFIG = 2**24  # bytes; Keras reads it as a whole, and into many objects
MOST_TIMES = 20  # the archive's own size, for what all its parts unpack to


def check_archive(path: Path) -> None:
    """Refuses a file that is not a Keras archive, or would fill the memory.

    Args:
        path: Path of a `.keras` file.
    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a Keras archive, is cut short, or its parts unpack to
            far more than the archive.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {part.filename: part.file_size for part in archive.infolist()}
    except zipfile.BadZipFile as error:
        if _is_tflite(path):
            raise ValueError(
                f"{path} is an exported .tflite file. Expected the .keras file it was "
                "exported from; `keras-vanilla translate` and `evaluate` take both."
            ) from error
        raise ValueError(f"{path} is not a Keras archive, or is cut short.") from error
    if "config.json" not in sizes:
        raise ValueError(f"{path} is not a Keras archive: it has no config.json.")
    for name, size in sizes.items():
        if name.endswith(".json") and size > LARGEST_CONFIG:
            raise ValueError(
                f"{path} is not a translator's archive: its {name} has {size:,} bytes."
            )
    if sum(sizes.values()) > MOST_TIMES * path.stat().st_size + LARGEST_CONFIG:
        raise ValueError(
            f"{path} is not a translator's archive: its {len(sizes)} parts would "
            f"unpack to {sum(sizes.values()):,} bytes."
        )


def round_weights(path: Path) -> None:
    """Makes a Keras archive about five times smaller; Keras reads it as before.

    Matrices of float32 are rounded to 8 bits, vectors (biases, normalizations) are not.
    HDF5 describes floats of any size and converts them when they are read. Those used
    here have so few bits of exponent that the numbers are evenly spaced, by a tenth of
    the matrix's standard deviation or less, and twice as far from the 64th on.

    Args:
        path: Path of a `.keras` file, which is overwritten.
    """
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            if name.endswith(".weights.h5"):
                content = _rounded(content)
            archive.writestr(name, content)


def _rounded(content):
    """The bytes of an HDF5 file whose matrices have 8 bits per number."""
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
    """The distance of two numbers, as its binary logarithm; None: not to be rounded."""
    if values.dtype != np.float32 or values.ndim < 2 or not values.any():
        return None
    # A power of two, at most a tenth of the deviation; 126 reach the largest number.
    narrowest = max(values.std() / 20, np.abs(values).max() / 126)
    step = int(np.ceil(np.log2(narrowest)))
    if np.array_equal(_rounded_to(values, step - 1), values):
        step -= 1  # rounding has raised the deviation: a second one changes nothing
    return step if step < -4 else None  # the bias of exponents is positive


def _rounded_to(values, step):
    steps = values / np.float32(2.0**step)
    steps = np.where(np.abs(steps) < 64, np.round(steps), 2 * np.round(steps / 2))
    return np.clip(steps, -126, 126) * np.float32(2.0**step)


def _write_matrix(file, name, values, step):
    kind = h5py.h5t.IEEE_F32LE.copy()
    # The positions of the sign and the exponent, its 2 bits, and the mantissa's 5.
    kind.set_fields(7, 5, 2, 0, 5)
    kind.set_size(1)
    kind.set_ebias(-4 - step)
    compressed = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    compressed.set_chunk(values.shape)
    compressed.set_deflate(9)
    space = h5py.h5s.create_simple(values.shape)
    stored = h5py.h5d.create(file.id, name.encode(), kind, space, compressed)
    dataset = h5py.Dataset(stored)
    dataset[...] = _rounded_to(values, step)
    return dataset


def _is_tflite(path):
    with open(path, "rb") as file:
        return file.read(8)[4:] == b"TFL3"
