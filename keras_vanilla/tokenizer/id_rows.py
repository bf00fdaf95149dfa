"""Checks lines and ids, cuts rows at the end id, and pads them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_vanilla._checks import check_line


def pad_ids(
    rows: Sequence[Sequence[int]], pad_id: int, length: int | None = None
) -> np.ndarray:
    """Pads rows of ids at the end to an int32 array (B, S), as models expect.

    Args:
        rows: list of lists of int, as returned by a tokenizer's `encode`.
        pad_id: int. The tokenizer's `pad_id`.
        length: int. The width S; None means the length of the longest row.
    Raises:
        TypeError: if `rows` is not a list of sequences of int.
        ValueError: if a row is longer than `length`.
    Example:
        source_ids = pad_ids(tokenizer.encode(["Good morning."]), tokenizer.pad_id)
        target_ids = greedy_search(model, source_ids)
        tokenizer.decode(target_ids)
    """
    rows = list(checked_rows(rows))
    longest = max(map(len, rows), default=0)
    length = longest if length is None else length
    if longest > length:
        raise ValueError(
            f"A row has {longest} ids, more than `length`. Received: length={length}"
        )
    ids = np.full((len(rows), length), pad_id, dtype=np.int32)
    for padded, row in zip(ids, rows, strict=True):
        padded[: len(row)] = row
    return ids


def check_iterable(name: str, values: Any) -> Iterable:
    """Returns the values; refuses a single str, which would be split into letters.

    Raises:
        TypeError: if `values` is one str, or not iterable.
    """
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"`{name}` must be a list. Received: {values!r:.60}")
    return values


def checked_lines(lines: Iterable[str], name: str = "lines") -> list[str]:
    """Returns lines as a list; each is checked before the next one is read.

    Args:
        lines: iterable of str.
        name: str. The argument's name, for errors.
    Raises:
        TypeError: if `lines` is one str, or not all items are str.
        ValueError: if an item has an unpaired surrogate.
    """
    item = "Line" if name == "lines" else f"`{name}`: line"
    checked = []
    for number, line in enumerate(check_iterable(name, lines), start=1):
        check_line(number, line, item)
        checked.append(line)
    return checked


def checked_rows(ids: Any) -> Iterator[np.ndarray]:
    """Yields each sequence of ids as an int64 array.

    Raises:
        TypeError: if `ids` is not a list of sequences of int.
    """
    if not isinstance(ids, (list, tuple)):
        array = np.asarray(ids)
        if not array.ndim:  # such as a str, or a generator
            raise TypeError(
                f"`ids` must be a list of lists of int. Received: {ids!r:.60}"
            )
        ids = array
    for row in ids:
        row = np.asarray(row)
        if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
            best = "; of a beam search's ids, decode ids[:, 0]" if row.ndim > 1 else ""
            raise TypeError(
                f"`ids` must be a list of lists of int. Received a row: {row!r:.60}"
                f"{best}"
            )
        yield row.astype(np.int64)


def ids_of_text(row: np.ndarray, size: int, special: Any) -> np.ndarray:
    """The ids of a row before its first end, without special ids.

    Args:
        row: int64 array (T,).
        size: int. All ids must be below it.
        special: object with `pad_id`, `start_id` and `end_id`, which are left out.
    Raises:
        ValueError: if an id is outside the vocabulary.
    """
    outside = row[(row < 0) | (row >= size)]
    if outside.size:
        raise ValueError(
            f"Id {outside[0]} is outside the target vocabulary of {size} ids."
        )
    ended = np.cumsum(row == special.end_id) > 0
    return row[~ended & (row != special.pad_id) & (row != special.start_id)]
