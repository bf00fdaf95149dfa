"""Parallel text in one file: two columns of a table, separated by tabs or as CSV."""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from keras_vanilla._checks import check_integer
from keras_vanilla.data.compression import is_compressed
from keras_vanilla.data.lines import lines_of

Columns = Sequence[int | str]


def check_columns(columns: Columns | None) -> None:
    """Refuses anything but two columns, each a number from 1 or a name, or None.

    Raises:
        ValueError: if they are something else, or one column twice.
    """
    if columns is None:
        return
    if isinstance(columns, str) or len(columns) != 2 or columns[0] == columns[1]:
        raise ValueError(
            "`columns` must be two different columns, of the source and of its "
            f"translation. Received: {columns!r}"
        )
    for column in columns:
        if not isinstance(column, str):
            check_integer("columns", column, 1)


def table_rows(
    paths: Iterable[str | os.PathLike], columns: Columns | None = None
) -> Iterator[tuple[int, str, str]]:
    """Yields the line number of each row, its source and its target.

    The number is that of its first line, over all files. An empty line is a row without
    text.

    Args:
        paths: paths of UTF-8 text; one that ends in ".csv", before the ending of a
            compressed file, is CSV, any other is tab-separated.
        columns: as `check_columns` takes them; None means tables of just two.
    Raises:
        FileNotFoundError, IsADirectoryError: if a path is not a file.
        ValueError: if a row has too few columns, or without `columns` more than two, a
            name is not in the first row, both columns are one, a line is not UTF-8 or
            has a NUL, or CSV is not quoted as it must be.
        ImportError: if a path ends in ".zst" and Python cannot read that.
    """
    lines_before = 0
    for path in paths:
        lines = 0
        for first, last, pair in _pairs(path, columns):
            yield lines_before + first, *pair
            lines = last
        lines_before += lines


def _pairs(path, columns):
    """First line, last line, and source and target of each row of one file."""
    name = PurePath(path)
    is_csv = (name.stem if is_compressed(name) else name.name).lower().endswith(".csv")
    rows = (_csv_rows if is_csv else _tab_rows)(path)
    kind = "comma-separated" if is_csv else "tab-separated"
    source, target = 0, 1
    if columns is not None:
        header = None
        if any(isinstance(column, str) for column in columns):
            *_, header = next(rows, [[]])
        source, target = (_index(column, header, path) for column in columns)
        if source == target:
            raise ValueError(
                f"{path}: `columns` must be two different columns. Received: "
                f"{columns!r}, which are both column {source + 1}"
            )
    least = 1 + max(source, target)
    for first, last, row in rows:
        if not any(row):
            yield first, last, ("", "")
        elif len(row) < least or (columns is None and len(row) > 2):
            expected = f"at least {least} {kind} columns"
            if columns is None:
                expected = f"2 {kind} columns, or `columns` to take of more"
            raise ValueError(
                f"{path}, line {first}: expected {expected}. Received: {len(row)}"
            )
        else:
            yield first, last, (row[source], row[target])


def _index(column, header, path):
    """The place of a column in a row, from 0."""
    if not isinstance(column, str):
        return column - 1
    if header.count(column) != 1:
        which = "no" if column not in header else "more than one"
        raise ValueError(
            f"{path} has {which} column {column!r}: the names in its first row are "
            f"{', '.join(map(repr, header))}."
        )
    return header.index(column)


def _tab_rows(path) -> Iterator[tuple[int, int, list[str]]]:
    """First line, last line and fields of each row; a quote is a character."""
    for number, line in enumerate(_texts(path), start=1):
        yield number, number, line.split("\t")


def _csv_rows(path) -> Iterator[tuple[int, int, list[str]]]:
    """The same of CSV; a quote that is not closed would swallow the rows after it."""
    reader = csv.reader((line + "\n" for line in _texts(path)), strict=True)
    while True:
        first = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"{path}, line {first}: not CSV: {error}.") from None
        if row is None:
            return
        yield first, reader.line_num, row


def _texts(path) -> Iterable[str]:
    for number, line in enumerate(lines_of(path), start=1):
        if b"\0" in line:
            raise ValueError(
                f"{path}, line {number}: a NUL character, which no UTF-8 text has."
            )
        yield line.decode()
