"""Opens text files, compressed or not, as binary streams."""

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from keras_vanilla._checks import extra_missing


def is_compressed(path: str | os.PathLike) -> bool:
    """True if a file's name ends in ".gz", ".xz" or ".zst"."""
    return Path(path).suffix in _FORMATS


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file, decompressed if its name ends in ".gz", ".xz" or ".zst".

    Args:
        path: path of the file.
    Raises:
        OSError: if it cannot be opened.
        ValueError: if a compressed file is damaged or truncated.
        ImportError: if it ends in ".zst" and Python cannot read this format.
    """
    suffix = Path(path).suffix
    open_text, damage = _FORMATS[suffix]() if suffix in _FORMATS else (open, ())
    with open_text(path, "rb") as stream:
        try:
            yield stream
        except (EOFError, *damage) as error:
            raise ValueError(f"{path} is not a whole {suffix} file: {error}") from None


@contextlib.contextmanager
def compressed(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Creates a file, compressed if its name ends in ".gz", ".xz" or ".zst".

    Args:
        path: path of the file, which must not exist.
    Raises:
        OSError: if it cannot be written.
        ImportError: if it ends in ".zst" and Python cannot write this format.
    """
    suffix = Path(path).suffix
    if suffix == ".gz":
        # Without name and time, so that the same text gives the same file.
        with open(path, "xb") as file:
            with gzip.GzipFile("", "wb", mtime=0, fileobj=file) as stream:
                yield stream
        return
    open_text, _ = _FORMATS[suffix]() if suffix in _FORMATS else (open, ())
    with open_text(path, "xb") as stream:
        yield stream


def _gzip():
    return gzip.open, (gzip.BadGzipFile, zlib.error)


def _xz():
    import lzma  # missing in some builds of Python

    return lzma.open, (lzma.LZMAError,)


def _zstd():
    try:
        from compression import zstd  # from Python 3.14 on
    except ImportError:
        try:
            from backports import zstd
        except ImportError as error:
            raise extra_missing(
                "Files that end in .zst",
                "Python 3.14 or the package backports.zstd",
                "zstd",
            ) from error
    return zstd.open, (zstd.ZstdError,)


_FORMATS = {".gz": _gzip, ".xz": _xz, ".zst": _zstd}
