"""Lines of text, packed."""

import contextlib
import gzip
import os
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from keras_vanilla._checks import check_line

BLOCK = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Lines(Sequence):
    """Lines of text as one block of UTF-8 bytes, decoded one by one when read.

    Args:
        block: bytes of all lines, one after the other, without line ends.
        ends: int64 array (n + 1,). Line i is block[ends[i] : ends[i + 1]].
    """

    def __init__(self, block: bytes, ends):
        self._block = bytes(block)
        self._ends = np.asarray(ends, dtype=np.int64)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Lines":
        """Packs strings; an unpaired surrogate is refused with its line number.

        Lines that are packed already are returned as they are.
        """
        if isinstance(texts, cls):
            return texts
        packing = Packing()
        for number, text in enumerate(texts, start=1):
            packing.add(check_line(number, text))
        return packing.lines()

    @classmethod
    def read(cls, *files) -> "Lines":
        """Reads paths (gzip by ".gz") or binary streams; only a newline ends a line.

        Neither U+2028 nor U+0085 does, which `str.splitlines` would split at: text
        copied from the web holds them, and one more line shifts every later pair.
        """
        packing = Packing()
        for file in files:
            packing.add_file(file)
        return packing.lines()

    def pick(self, indices) -> "Lines":
        """The lines at `indices`, in that order."""
        starts, stops = self._ends[indices], self._ends[np.add(indices, 1)]
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        block = b"".join(self._block[start:stop] for start, stop in spans)
        return Lines(block, np.concatenate([[0], np.cumsum(stops - starts)]))

    def add_to(self, digest):
        """Adds every line, and where it ends, to a digest of `hashlib`."""
        digest.update(self._ends.tobytes())
        digest.update(self._block)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        index = range(len(self))[index]  # negative and out of range, as in a list
        return self._block[self._ends[index] : self._ends[index + 1]].decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        start = 0
        for stop in memoryview(self._ends)[1:]:
            yield self._block[start:stop].decode("utf-8")
            start = stop


class FileLines:
    """The lines of UTF-8 text files, read from the files at each iteration.

    They are never kept in memory, so text of any size can be used, for example to
    train a `Tokenizer`.

    Args:
        *files: paths; gzip when they end in ".gz". Their lines follow each other.
    Raises:
        TypeError: if there is no path, or a list of paths is given as one argument.
    Example:
        Tokenizer.train(FileLines("train.en", "train.fr"))
    """

    def __init__(self, *files: str | os.PathLike):
        if not files or not all(isinstance(f, (str, os.PathLike)) for f in files):
            raise TypeError(f"FileLines expects paths. Received: {files!r:.80}")
        self._files = files

    def __len__(self) -> int:
        return sum(1 for file in self._files for _ in lines_of(file))

    def __iter__(self) -> Iterator[str]:
        for file in self._files:
            yield from (line.decode("utf-8") for line in lines_of(file))


class Packing:
    """Lines in the making."""

    def __init__(self):
        self._block, self._ends = bytearray(), array("q", [0])

    def add(self, line: bytes):
        self._block += line
        self._ends.append(len(self._block))

    def add_file(self, file):
        for line in lines_of(file):
            self.add(line)

    def lines(self) -> Lines:
        return Lines(self._block, self._ends)

    def __len__(self) -> int:
        return len(self._ends) - 1


def lines_of(file) -> Iterator[bytes]:
    """The lines of a path or a stream, without their ends, all in UTF-8.

    Args:
        file: path (read through gzip when it ends in ".gz") or binary stream.
    Raises:
        FileNotFoundError, IsADirectoryError: if a path is not a file.
        ValueError: if a line is not UTF-8, or a gzip file is damaged.
    """
    for number, line in enumerate(_binary_lines(file), start=1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        yield utf8(line, getattr(file, "name", file), number)


def count_lines(path) -> int:
    """Number of lines of a text file; gzip when it ends in ".gz"."""
    lines, last = 0, b"\n"
    with _opened(path) as stream:
        while block := stream.read(BLOCK):
            lines, last = lines + block.count(b"\n"), block[-1:]
    return lines + (last != b"\n")


def utf8(line: bytes, origin, number: int) -> bytes:
    """The line itself; one that is not UTF-8 is refused, saying where it stands."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{origin}, line {number}: byte 0x{line[error.start]:02x} at column "
            f"{error.start + 1} is not UTF-8."
        ) from None
    return line


@contextlib.contextmanager
def _opened(file):
    """A path as a stream of the bytes of its text, gzip or not."""
    unpacked = gzip.open if Path(file).suffix == ".gz" else open
    with unpacked(file, "rb") as stream:
        try:
            yield stream
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{file} is not a whole gzip file: {error}") from None


def _binary_lines(file):
    """The lines of a path or a stream as bytes, each with its newline."""
    if hasattr(file, "read"):
        yield from file
        return
    with _opened(file) as stream:
        yield from stream
