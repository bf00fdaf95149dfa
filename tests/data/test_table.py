import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.data import ParallelCorpus

FIELD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"))
ROWS = [["id", "de", "en"], ["1", 'Er sagt "ja".', "He says, yes."], ["2", "Ü", "o"]]
PAIRS = [('Er sagt "ja".', "He says, yes."), ("Ü", "o")]


def write(path, content):
    pack = gzip.compress if path.suffix == ".gz" else bytes
    path.write_bytes(pack(content.encode() if isinstance(content, str) else content))
    return path


def tab_separated(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def as_csv(rows):
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue()


@pytest.fixture(params=["t.tsv", "t.txt.gz", "t.csv", "t.CSV.gz"])
def table(request, tmp_path):
    """Writes rows into a table of each kind; its path."""
    form = as_csv if "csv" in request.param.lower() else tab_separated
    return lambda rows: write(tmp_path / request.param, form(rows))


@pytest.mark.parametrize("columns", [("de", "en"), ("de", 3), ["de", np.int64(3)]])
def test_columns_are_chosen_by_name_or_number(table, columns):
    corpus = ParallelCorpus.from_table(table(ROWS), columns)
    assert list(corpus) == PAIRS and corpus.line_numbers.tolist() == [2, 3]


def test_columns_by_number_alone_have_no_row_of_names(table):
    corpus = ParallelCorpus.from_table(table(ROWS), (3, 2))
    assert list(corpus) == [("en", "de"), *((en, de) for de, en in PAIRS)]


def test_table_of_two_columns_needs_no_choice(table):
    corpus = ParallelCorpus.from_table(table(PAIRS))
    assert list(corpus) == PAIRS and corpus.line_numbers.tolist() == [1, 2]


def test_its_digest_is_that_of_the_same_pairs_in_two_files(table, tmp_path):
    from_table = ParallelCorpus.from_table(table(ROWS), ("de", "en"))
    sides = zip(*PAIRS, strict=True)
    paths = [
        write(tmp_path / f"side{i}", "\n".join(each)) for i, each in enumerate(sides)
    ]
    assert from_table.digest == ParallelCorpus.from_files(*paths).digest


def test_pair_without_text_on_a_side_is_left_out_and_reported(table):
    corpus = ParallelCorpus.from_table(table([*PAIRS, ["a", " "], ["", "b"], ["", ""]]))
    assert list(corpus) == PAIRS and corpus.report == {"empty": [3, 4, 5]}


def test_an_empty_line_is_a_pair_without_text(tmp_path):
    for name in ("t.tsv", "t.csv"):
        separator = "," if name == "t.csv" else "\t"
        text = f"a{separator}b\n\nc{separator}d\n\n"
        corpus = ParallelCorpus.from_table(write(tmp_path / name, text))
        assert list(corpus) == [("a", "b"), ("c", "d")]
        assert corpus.report == {"empty": [2, 4]}


def test_line_numbers_continue_from_file_to_file(tmp_path):
    one = write(tmp_path / "1.csv", 'en,de\r\n"two\r\nlines",zwei\r\n\r\na,b\r\n')
    two = write(tmp_path / "2.tsv", "de\ten\nd\tc\n")
    corpus = ParallelCorpus.from_table([one, two], ("en", "de"))
    assert list(corpus) == [("two\nlines", "zwei"), ("a", "b"), ("c", "d")]
    assert corpus.line_numbers.tolist() == [2, 5, 7]
    assert corpus.report == {"empty": [4]} and "1.csv, " in corpus.origin


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(FIELD, FIELD), min_size=1))
def test_any_text_that_csv_writes_comes_back(tmp_path_factory, pairs):
    rows = [("source", "target"), *pairs, ("last", "pair")]
    path = write(tmp_path_factory.mktemp("csv") / "t.csv", as_csv(rows))
    corpus = ParallelCorpus.from_table(path, ("source", "target"))
    full = [pair for pair in pairs if all(map(str.strip, pair))]
    assert list(corpus) == [*full, ("last", "pair")]


def test_quotes_of_a_tab_separated_table_are_characters(tmp_path):
    path = write(tmp_path / "t.tsv", '"Ja", sagt er.\t"Yes\n"a\tb"\n')
    corpus = ParallelCorpus.from_table(path)
    assert list(corpus) == [('"Ja", sagt er.', '"Yes'), ('"a', 'b"')]


@pytest.mark.parametrize("row, count", [(["alone"], 1), (["a", "b", "c"], 3)])
def test_other_column_counts_are_refused_with_file_and_line(table, row, count):
    message = rf"line 3: expected 2 .*separated columns, .*Received: {count}$"
    with pytest.raises(ValueError, match=message):
        ParallelCorpus.from_table(table([*PAIRS, row]))


def test_a_row_with_too_few_columns_is_refused_with_its_line(table):
    message = r"line 4: expected at least 3 .*separated columns. Received: 2$"
    with pytest.raises(ValueError, match=message):
        ParallelCorpus.from_table(table([*ROWS, ["3", "a"]]), ("de", "en"))


def test_unknown_and_repeated_names_are_refused_with_those_that_there_are(table):
    with pytest.raises(ValueError, match="no column 'fr': .* are 'id', 'de', 'en'"):
        ParallelCorpus.from_table(table(ROWS), ("de", "fr"))
    with pytest.raises(ValueError, match="more than one column 'a': .* 'a', 'b', 'a'"):
        ParallelCorpus.from_table(table([["a", "b", "a"]]), ("a", "b"))


@pytest.mark.parametrize(
    "columns", [("de",), (1, 2, 3), "de", (2, 2), ("de", "de"), ("de", 2)], ids=str
)
def test_anything_but_two_different_columns_is_refused(table, columns):
    with pytest.raises(ValueError, match="`columns` must be two different columns"):
        ParallelCorpus.from_table(table(ROWS), columns)


@pytest.mark.parametrize("column", [0, -1, 1.5, None])
def test_column_number_below_one_or_no_number_is_refused(table, column):
    with pytest.raises(ValueError, match="`columns` must be an integer of at least 1"):
        ParallelCorpus.from_table(table(ROWS), (column, 2))


@pytest.mark.parametrize("name", ["t.tsv", "t.csv"])
@pytest.mark.parametrize(
    "bad, message",
    [
        (b"a\xe9", "byte 0xe9 at column 2 is not UTF-8"),
        (b"a\0", "a NUL character, which no UTF-8 text has"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_file_and_line(
    tmp_path, name, bad, message
):
    separator = b"," if name == "t.csv" else b"\t"
    path = write(tmp_path / name, separator.join([b"a", b"b\n" + bad, b"d\n"]))
    with pytest.raises(ValueError, match=rf"{name}, line 2: {message}"):
        ParallelCorpus.from_table(path)


@pytest.mark.parametrize(
    "text, line, reason",
    [
        ('a,b\n"c,d\ne,f\n', 2, "unexpected end of data"),  # never closed
        ('a,b\n"c"d,e\n', 2, "',' expected after '\"'"),
    ],
)
def test_csv_that_is_quoted_wrongly_is_refused(tmp_path, text, line, reason):
    with pytest.raises(ValueError, match=f"t.csv, line {line}: not CSV: {reason}"):
        ParallelCorpus.from_table(write(tmp_path / "t.csv", text))


def test_no_file_and_a_table_without_text_are_refused(table, tmp_path):
    with pytest.raises(ValueError, match="`path` must be a file, or several"):
        ParallelCorpus.from_table([])
    with pytest.raises(FileNotFoundError):
        ParallelCorpus.from_table(tmp_path / "absent.tsv")
    with pytest.raises(ValueError, match="none of 0 lines has text on both sides"):
        ParallelCorpus.from_table(table([ROWS[0]]), ("de", "en"))
    with pytest.raises(ValueError, match="no column 'de'"):
        ParallelCorpus.from_table(table([]), ("de", "en"))
