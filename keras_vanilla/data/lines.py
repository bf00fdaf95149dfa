"""Lines of text, in memory or in their files."""

import contextlib
import hashlib
import os
import re
import stat
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from keras_vanilla._checks import some_of
from keras_vanilla.data.compression import opened

Paths = str | os.PathLike | Iterable[str | os.PathLike]

BLOCK = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELD_ENDS = re.compile(r"[\t\r\n]")


class Lines(Sequence):
    """Lines of text in one block of UTF-8 bytes, decoded when they are read.

    Args:
        block: bytes of all lines, one after the other, without line ends.
        offsets: int64 array (n + 1,). Line i is block[offsets[i] : offsets[i + 1]].
    """

    def __init__(self, block: bytes | bytearray, offsets: Sequence[int] | np.ndarray):
        self._block = bytes(block)
        self._offsets = np.asarray(offsets, dtype=np.int64)

    def pick(self, indices: np.ndarray) -> "Lines":
        """The lines at `indices`, in that order."""
        starts, stops = self._offsets[indices], self._offsets[np.add(indices, 1)]
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        block = b"".join(self._block[start:stop] for start, stop in spans)
        return Lines(block, np.concatenate([[0], np.cumsum(stops - starts)]))

    def add_to(self, digest: "hashlib._Hash") -> None:
        """Updates a `hashlib` digest with all lines and their ends."""
        digest.update(self._offsets.tobytes())
        digest.update(self._block)

    def is_same_as(self, other: "Lines") -> bool:
        """True if both have the same lines."""
        same_ends = np.array_equal(self._offsets, other._offsets)
        return same_ends and self._block == other._block

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __add__(self, other: "Lines") -> "Lines":
        later = other._offsets[1:] + self._offsets[-1]
        offsets = np.concatenate([self._offsets, later])
        return Lines(self._block + other._block, offsets)

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        index = range(len(self))[index]  # handles negative indices and range errors
        return self._block[self._offsets[index] : self._offsets[index + 1]].decode(
            "utf-8"
        )

    def __iter__(self) -> Iterator[str]:
        start = 0
        for stop in memoryview(self._offsets)[1:]:
            yield self._block[start:stop].decode("utf-8")
            start = stop


class FileLines:
    """The lines of UTF-8 text files, read from the files at each iteration.

    They are never kept in memory, so text of any size can be used, for example to
    train a `Tokenizer`.

    Args:
        *files: paths of text, which is read in this order; .gz, .xz and .zst files are
            decompressed.
    Raises:
        TypeError: if there are no paths, or a list of paths is given as one argument.
        ValueError: if a path is a pipe, which can only be read once.
    Example:
        Tokenizer.train(FileLines("train.en", "train.fr"))
    """

    def __init__(self, *files: str | os.PathLike):
        if not files or not all(isinstance(f, (str, os.PathLike)) for f in files):
            raise TypeError(f"FileLines expects paths. Received: {files!r:.80}")
        for file in files:
            refuse_pipe(file)
        self._files = files

    def __len__(self) -> int:
        return sum(1 for file in self._files for _ in lines_of(file))

    def __iter__(self) -> Iterator[str]:
        for file in self._files:
            yield from (line.decode("utf-8") for line in lines_of(file))


class Packing:
    """Packs UTF-8 lines one by one."""

    def __init__(self):
        self._block, self._offsets = bytearray(), array("q", [0])

    def add(self, line: bytes) -> None:
        """Adds a line without its end."""
        self._block += line
        self._offsets.append(len(self._block))

    def add_file(self, file: str | os.PathLike | BinaryIO) -> None:
        """Adds the lines of a path or a stream; see `lines_of`."""
        for line in lines_of(file):
            self.add(line)

    def lines(self) -> Lines:
        """All lines that were added."""
        return Lines(self._block, self._offsets)

    def __len__(self) -> int:
        return len(self._offsets) - 1


def lines_of(file: str | os.PathLike | BinaryIO) -> Iterator[bytes]:
    """The lines of a path or a stream, without their ends, all in UTF-8.

    Only a newline ends a line. `str.splitlines` also splits at U+2028 and U+0085, which
    occur in text from the web; all later pairs would then be shifted by one line.

    Args:
        file: path (decompressed as by `opened`) or binary stream.
    Raises:
        FileNotFoundError, IsADirectoryError: if a path is not a file.
        ValueError: if a line is not UTF-8, or a compressed file is damaged.
        ImportError: if a path ends in ".zst" and Python cannot read this format.
    """
    for number, line in enumerate(raw_lines(file), start=1):
        yield utf8(line, getattr(file, "name", file), number)


def raw_lines(file: str | os.PathLike | BinaryIO) -> Iterator[bytes]:
    """Same as `lines_of`, but also yields lines that are not UTF-8."""
    is_stream = hasattr(file, "read")
    with contextlib.nullcontext(file) if is_stream else opened(file) as stream:
        for index, line in enumerate(stream):
            if index == 0:
                line = line.removeprefix(BYTE_ORDER_MARK)
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def one_line(text: str) -> str:
    """Replaces tabs and line ends by spaces, so that a text fits into one field.

    Translations may contain them as byte pieces.
    """
    return _FIELD_ENDS.sub(" ", text)


def count_lines(path: str | os.PathLike) -> int:
    """The number of lines in a text file, decompressed as by `opened`."""
    lines, last = 0, b"\n"
    with opened(path) as stream:
        while block := stream.read(BLOCK):
            lines, last = lines + block.count(b"\n"), block[-1:]
    return lines + (last != b"\n")


def refuse_pipe(path: str | os.PathLike) -> None:
    """Refuses a pipe or a device where text is read more than once."""
    if not os.path.exists(path):
        return  # `open` raises a better error
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ValueError(
            f"{path} must be a file: its text is read more than once. Received: a pipe "
            "or a device; write its text to a file first"
        )


def paired_paths(source: Paths, target: Paths) -> list[tuple[str, str]]:
    """Pairs the path of each source file with that of its translation.

    Args:
        source: path, or several paths.
        target: path, or the same number of paths.
    Raises:
        ValueError: if there are no paths, their numbers differ, or source and target
            are the same file.
    """
    sources, targets = paths_of(source), paths_of(target)
    if not sources or len(sources) != len(targets):
        raise ValueError(
            "Every file of source text needs one of its translation. "
            f"Received: {len(sources)} source and {len(targets)} target files"
        )
    pairs = list(zip(sources, targets, strict=True))
    for pair in pairs:
        refuse_copies(*pair, _are_one_file(*pair))
    return pairs


def refuse_copies(source: object, target: object, are_one: bool) -> None:
    """Refuses a text that is given as its own translation.

    Args:
        source: name of the text.
        target: name of its translation.
        are_one: bool. Whether they are the same text.
    Raises:
        ValueError: if `are_one` is true.
    """
    if are_one:
        raise ValueError(
            f"{source} and {target} must be a text and its translation. Received: the "
            "same text twice, from which a model learns only to copy"
        )


def paths_of(files: Paths) -> list[str]:
    """The paths of one file, or of several."""
    several = isinstance(files, Iterable) and not isinstance(files, (str, bytes))
    return [os.fspath(Path(file)) for file in (files if several else [files])]


def names_of(paths: Iterable[tuple[str, str]]) -> str:
    """The name of the text of these files, for messages."""
    return " and ".join(some_of(side, 3) for side in zip(*paths, strict=True))


def check_line_counts(
    source: object, target: object, source_lines: int, target_lines: int
) -> None:
    """Refuses two files with different numbers of lines."""
    if source_lines != target_lines:
        raise ValueError(
            f"{source} and {target}: {source_lines} source lines, {target_lines} "
            "target lines."
        )


def utf8(line: bytes, origin: object, number: int) -> bytes:
    """Returns the line if it is UTF-8; the error names the file and the line."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{origin}, line {number}: byte 0x{line[error.start]:02x} at column "
            f"{error.start + 1} is not UTF-8."
        ) from None
    return line


def _are_one_file(source, target):
    try:
        return os.path.samefile(source, target)
    except OSError:  # reading the files gives a better error
        return source == target
