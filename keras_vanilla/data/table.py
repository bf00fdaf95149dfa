"""Parallel text in two columns of a TSV or CSV file."""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from keras_vanilla._checks import check_integer
from keras_vanilla.data.compression import is_compressed
from keras_vanilla.data.lines import lines_of

Columns = Sequence[int | str]


def check_columns(columns: Columns | None) -> None:
    """Checks that columns are None, or two numbers from 1 or names.

    Raises:
        ValueError: if they are something else, or the same column twice.
    """
    if columns is None:
        return
    several = isinstance(columns, Sequence) and not isinstance(columns, str)
    if not several or len(columns) != 2 or columns[0] == columns[1]:
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

    The number of a row is that of its first line, over all files. An empty line is a
    row without text.

    Args:
        paths: paths of UTF-8 text; files that end in ".csv" (or ".csv.gz" and so on)
            are CSV, others are tab-separated.
        columns: as for `check_columns`; None means tables with exactly two columns.
    Raises:
        FileNotFoundError, IsADirectoryError: if a path is not a file.
        ValueError: if a row has too few columns, or more than two without `columns`, a
            name is not in the first row, both columns are the same, a line is not UTF-8
            or has a NUL, or CSV is not quoted correctly.
        ImportError: if a path ends in ".zst" and Python cannot read this format.
    """
    lines_before = 0
    for path in paths:
        lines = 0
        for first, last, pair in _pairs(path, columns):
            yield lines_before + first, *pair
            lines = last
        lines_before += lines


def _pairs(path, columns):
    """First line, last line, source and target of each row of a file."""
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
    """The index of a column, from 0."""
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
    """First line, last line and fields of each row, without quoting."""
    for number, line in enumerate(_texts(path), start=1):
        yield number, number, line.split("\t")


def _csv_rows(path) -> Iterator[tuple[int, int, list[str]]]:
    """The same for CSV; refuses unclosed quotes, which would include later rows."""
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
