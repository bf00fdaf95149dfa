"""Text files, compressed or not, opened as binary streams of their text."""

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from keras_vanilla._checks import extra_missing

BLOCK = 1 << 16


def is_compressed(path: str | os.PathLike) -> bool:
    """Whether a file's name ends in ".gz", ".xz" or ".zst"."""
    return Path(path).suffix in _FORMATS


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """The text of a file, decompressed if it ends in ".gz", ".xz" or ".zst".

    Args:
        path: path of the file.
    Raises:
        OSError: if it cannot be opened.
        ValueError: if a compressed file is damaged or cut short.
        ImportError: if it ends in ".zst" and Python cannot read that.
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
    """A new file to write text to, compressed if it ends in ".gz", ".xz" or ".zst".

    Args:
        path: path of the file, which must not exist.
    Raises:
        OSError: if it cannot be written.
        ImportError: if it ends in ".zst" and Python cannot write that.
    """
    suffix = Path(path).suffix
    with _WRITERS[suffix](path) if suffix in _WRITERS else open(path, "xb") as file:
        yield file


@contextlib.contextmanager
def _gzip_writer(path):
    with open(path, "xb") as file:
        # Neither a name nor a time in it: the same text is the same file.
        with gzip.GzipFile("", "wb", mtime=0, fileobj=file) as stream:
            yield stream


def _xz_writer(path):
    import lzma

    return lzma.open(path, "xb")


def _zstd_writer(path):
    with contextlib.suppress(ImportError):
        from compression import zstd  # from Python 3.14 on

        return zstd.open(path, "xb")
    with contextlib.suppress(ImportError):
        import zstandard

        return zstandard.open(path, "xb")
    raise _no_zstd()


_WRITERS = {".gz": _gzip_writer, ".xz": _xz_writer, ".zst": _zstd_writer}


def _gzip():
    return gzip.open, (gzip.BadGzipFile, zlib.error)


def _xz():
    import lzma  # which some builds of Python lack

    return lzma.open, (lzma.LZMAError,)


def _zstd():
    new_decompressor, error = _zstd_decompressor()

    @contextlib.contextmanager
    def open_zstd(path, mode):
        with open(path, mode) as file:
            yield io.BufferedReader(_Stream(_texts(file, new_decompressor)))

    return open_zstd, (error,)


_FORMATS = {".gz": _gzip, ".xz": _xz, ".zst": _zstd}


def _zstd_decompressor() -> tuple[Callable, type[Exception]]:
    """What makes the decompressor of one frame, and its error."""
    with contextlib.suppress(ImportError):
        from compression import zstd  # from Python 3.14 on

        return zstd.ZstdDecompressor, zstd.ZstdError
    with contextlib.suppress(ImportError):
        import zstandard

        decompressor = zstandard.ZstdDecompressor()
        return decompressor.decompressobj, zstandard.ZstdError
    raise _no_zstd()


def _no_zstd():
    return extra_missing(
        "Files that end in .zst", "Python 3.14 or the package zstandard", "zstd"
    )


def _texts(file, new_decompressor):
    """The text of a .zst file in blocks; `zstandard` itself overlooks a file's cut."""
    decompressor = None
    while block := file.read(BLOCK):
        while block:
            decompressor = decompressor or new_decompressor()
            yield decompressor.decompress(block)
            block = b""
            if decompressor.eof:  # one frame may follow another
                block, decompressor = decompressor.unused_data, None
    if decompressor:
        raise EOFError("it ends before its end-of-stream marker was reached")


class _Stream(io.RawIOBase):
    """Blocks of bytes as a file."""

    def __init__(self, blocks: Iterator[bytes]):
        super().__init__()
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
