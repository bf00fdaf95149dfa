"""Parallel text in two columns of a TSV or CSV file."""

import codecs
import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import PurePath

from keras_vanilla._checks import check_choice, check_integer
from keras_vanilla.data.compression import is_compressed, opened

Columns = Sequence[int | str]

SEPARATED = {",": "comma-separated", "\t": "tab-separated", ";": "semicolon-separated"}
NAME = re.compile(r"[^\W\d][\w-]{,29}")  # what a column could be called
ESCAPED = re.compile("[\udc80-\udcff]")  # a byte that is not in the encoding
BYTE_ORDER_MARKS = "\udcff\udcfe", "\udcfe\udcff"  # of UTF-16, read as UTF-8


@dataclass(frozen=True, kw_only=True)
class TableFormat:
    """How to read a table; the arguments are those of `ParallelCorpus.from_table`.

    Raises:
        ValueError: if an argument has none of the described values.
    """

    columns: Columns | None = None
    header: bool | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    on_bad_rows: str = "error"

    def __post_init__(self):
        columns = self.columns
        if columns is not None:
            several = isinstance(columns, Sequence) and not isinstance(columns, str)
            if not several or len(columns) != 2 or columns[0] == columns[1]:
                raise ValueError(
                    "`columns` must be two different columns, of the source and of its "
                    f"translation. Received: {columns!r}"
                )
            for column in columns:
                if not isinstance(column, str):
                    check_integer("columns", column, 1)
        if not isinstance(self.header, bool | None):
            raise ValueError(
                f"`header` must be True, False or None. Received: {self.header!r}"
            )
        if self.header is False and self.has_names:
            raise ValueError(
                "`columns` must be numbers with header=False, as there are no names. "
                f"Received: {columns!r}"
            )
        check_choice("on_bad_rows", self.on_bad_rows, ("error", "skip"))
        delimiter = self.delimiter
        if delimiter is not None and (
            not isinstance(delimiter, str)
            or len(delimiter) != 1
            or delimiter in '"\r\n'
        ):
            raise ValueError(
                "`delimiter` must be one character, not a quote or a line end. "
                f"Received: {delimiter!r}"
            )
        try:
            io.TextIOWrapper(io.BytesIO(), self.encoding)
        except (LookupError, TypeError, ValueError):
            raise ValueError(
                "`encoding` must be a text encoding of Python, such as 'utf-16'. "
                f"Received: {self.encoding!r}"
            ) from None

    @property
    def has_names(self) -> bool:
        """True if the first row is known to have the names of the columns."""
        by_name = any(isinstance(column, str) for column in self.columns or ())
        return by_name or self.header is True


def table_rows(
    paths: Iterable[str | os.PathLike], table: TableFormat, report: dict[str, list[int]]
) -> Iterator[tuple[int, str, str]]:
    """Yields the line number of each row, its source and its target.

    The number of a row is that of its first line, over all files. An empty line is a
    row without text.

    Args:
        paths: paths of text; files that end in ".csv" (or ".csv.gz" and so on) are CSV,
            others are not quoted.
        table: TableFormat.
        report: dict that receives the lines of bad rows by reason.
    Raises:
        FileNotFoundError, IsADirectoryError: if a path is not a file.
        ValueError: at the end, if there were bad rows that are not skipped: with other
            numbers of columns, not in the encoding, with a NUL, or quoted wrongly. At
            once, if a name is not in the first row, both columns are the same, or the
            first row looks like names or UTF-16.
        ImportError: if a path ends in ".zst" and Python cannot read this format.
    """
    lines_before, bad, error = 0, 0, None
    for path in paths:
        lines = 0
        for first, lines, pair in _pairs(path, table):
            if isinstance(pair, str):
                bad += 1
                error = error or f"{path}, line {first}: {pair}"
                numbers = range(lines_before + first, lines_before + lines + 1)
                report.setdefault(pair, []).extend(numbers)
            else:
                yield lines_before + first, *pair
        lines_before += lines
    if error and table.on_bad_rows == "error":
        more = f", and {bad - 1} more bad rows" if bad > 1 else ""
        raise ValueError(
            f"{error}{more}. on_bad_rows='skip' "
            "(--on-bad-rows skip) leaves bad rows out."
        )


def _pairs(path, table):
    """First line, last line, and source and target or a problem, of each row."""
    name = PurePath(path)
    is_csv = (name.stem if is_compressed(name) else name.name).lower().endswith(".csv")
    delimiter = table.delimiter or ("," if is_csv else "\t")
    rows = _checked_rows(path, table, is_csv, delimiter)
    source, target = 0, 1
    names = None
    if table.has_names:
        *_, names = next(rows, (1, 1, []))
        if isinstance(names, str):
            raise ValueError(f"{path}, line 1: {names}.")
    if table.columns is not None:
        source, target = (
            _index(column, names, path, table, delimiter) for column in table.columns
        )
        if source == target:
            raise ValueError(
                f"{path}: `columns` must be two different columns. Received: "
                f"{table.columns!r}, which are both column {source + 1}"
            )
    least = 1 + max(source, target)
    if table.header is None and names is None:
        head = list(islice(rows, 20))
        rows = chain(head, rows)
        _ask_about_names(path, [row for *_, row in head], source, target)
    for first, last, row in rows:
        if isinstance(row, str):
            yield first, last, row
        elif not any(row):
            yield first, last, ("", "")
        elif len(row) < least or (table.columns is None and len(row) > 2):
            kind = SEPARATED.get(delimiter, f"{delimiter!r}-separated")
            expected = f"at least {least} {kind} columns"
            if table.columns is None:
                expected = f"2 {kind} columns without `columns`"
            hint = _other_delimiter(row, table, delimiter, least)
            yield first, last, f"expected {expected}, received {len(row)}{hint}"
        else:
            yield first, last, (row[source], row[target])


def _index(column, names, path, table, delimiter):
    """The index of a column, from 0."""
    if not isinstance(column, str):
        return column - 1
    if names.count(column) != 1:
        which = "no" if column not in names else "more than one"
        raise ValueError(
            f"{path} has {which} column {column!r}: the names in its first row are "
            f"{', '.join(map(repr, names))}"
            f"{_other_delimiter(names, table, delimiter, 2)}."
        )
    return names.index(column)


def _other_delimiter(row, table, delimiter, least):
    """Which delimiter the row seems to have, where the user has told none."""
    if table.delimiter is None:
        text = delimiter.join(row)
        for other in ";\t,":
            count = len(text.split(other))
            if other != delimiter and (count == 2 or table.columns) and count >= least:
                return f" (it looks like delimiter={other!r})"
    return ""


def _ask_about_names(path, rows, source, target):
    """Raises if the first row has words like names, and most other rows have not."""
    pairs = [
        (row[source], row[target])
        if not isinstance(row, str) and len(row) > max(source, target)
        else ("", "")
        for row in rows
    ]
    first, *others = [
        all(map(NAME.fullmatch, pair))
        for number, pair in enumerate(pairs)
        if number == 0 or any(pair)
    ] or [False]
    if first and others and 2 * sum(others) <= len(others):
        raise ValueError(
            f"{path}, line 1: {pairs[0]} looks like the names of the columns: set "
            "header=True (--header) if it is, or header=False (--no-header) if it is "
            "a pair."
        )


def _checked_rows(path, table, is_csv, delimiter):
    """First line, last line, and fields or a problem, of each row of a file."""
    encoding = codecs.lookup(table.encoding).name
    with opened(path) as stream:
        text = io.TextIOWrapper(
            stream,
            "utf-8-sig" if encoding == "utf-8" else encoding,
            errors="surrogateescape",
            newline="\n",  # only this ends a line, see `lines_of`
        )
        lines = (line.removesuffix("\n").removesuffix("\r") for line in text)
        # A byte-order mark, if the encoding's name says the order as well.
        lines = (
            line.removeprefix("\ufeff") if number == 0 else line
            for number, line in enumerate(lines)
        )
        try:
            for first, last, row in (_csv_rows if is_csv else _split)(lines, delimiter):
                cells = row if isinstance(row, str) else "".join(row)
                if first == 1 and cells.startswith(BYTE_ORDER_MARKS):
                    raise ValueError(f"{path} looks like encoding='utf-16'.")
                if "\0" in cells:
                    row = f"a NUL character, which no {encoding} text has"
                elif byte := ESCAPED.search(cells):
                    row = f"byte 0x{ord(byte[0]) - 0xDC00:02x} is not {encoding}"
                yield first, last, row
        except UnicodeError as error:
            raise ValueError(f"{path} is not {encoding}: {error}.") from None


def _split(lines, delimiter):
    for number, line in enumerate(lines, start=1):
        yield number, number, line.split(delimiter)


def _csv_rows(lines, delimiter):
    """Rows of CSV; an unclosed quote includes all later lines, which is a problem."""
    with_ends = (line + "\n" for line in lines)
    reader = csv.reader(with_ends, strict=True, delimiter=delimiter)
    while True:
        first = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            row = f"not CSV: {error}"
        if row is None:
            return
        yield first, reader.line_num, row
