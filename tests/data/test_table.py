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


def test_header_is_asked_about_where_columns_are_numbers(table):
    path, pairs = table(ROWS), [(en, de) for de, en in PAIRS]
    with pytest.raises(ValueError, match=r"line 1: \('en', 'de'\) .*header=True"):
        ParallelCorpus.from_table(path, (3, 2))
    without = ParallelCorpus.from_table(path, (3, 2), header=True)
    assert list(without) == pairs and without.line_numbers.tolist() == [2, 3]
    with_header = ParallelCorpus.from_table(path, (3, 2), header=False)
    assert list(with_header) == [("en", "de"), *pairs]


@pytest.mark.parametrize(
    "pairs",
    [
        [("one", "een"), ("two", "twee")],
        [("Ja!", "Yes!"), ("Er sagt ja.", "He says yes.")],
        [("Ja", "Yes")],
        [("Ja", "Oh yes"), ("Er sagt ja.", "He says yes.")],
    ],
)
def test_words_and_sentences_are_not_header(table, pairs):
    assert list(ParallelCorpus.from_table(table(pairs))) == pairs


def test_bad_rows_are_skipped_and_reported(tmp_path):
    rows = [
        "a,b",
        "c",
        '"d"e,f',
        b"\xff,g",
        "h\0,i",
        ",",
        "j,k",
        "l,m,n",
        '"o,p',
        "q,r",
    ]
    rows = [row if isinstance(row, bytes) else row.encode() for row in rows]
    paths = [write(tmp_path / f"{i}.csv", b"\n".join(rows) + b"\n") for i in range(2)]
    corpus = ParallelCorpus.from_table(paths, on_bad_rows="skip")
    assert list(corpus) == [("a", "b"), ("j", "k")] * 2
    assert corpus.line_numbers.tolist() == [1, 7, 11, 17]
    columns = "expected 2 comma-separated columns without `columns`, received"
    assert corpus.report == {
        f"{columns} 1": [2, 12],
        "not CSV: ',' expected after '\"'": [3, 13],
        "byte 0xff is not utf-8": [4, 14],
        "a NUL character, which no utf-8 text has": [5, 15],
        f"{columns} 3": [8, 18],
        "not CSV: unexpected end of data": [9, 10, 19, 20],  # an open quote
        "empty": [6, 16],
    }
    with pytest.raises(ValueError, match="0.csv, line 2: .* and 11 more bad rows"):
        ParallelCorpus.from_table(paths)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252", "utf-16-be"])
@pytest.mark.parametrize("name, delimiter", [("t.csv", ";"), ("t.txt", "\t")])
def test_tables_of_spreadsheets(encoding, name, delimiter, tmp_path):
    ends = '"Ü\r\n;";"o ""p"""\r\n' if name == "t.csv" else "Ü;\to p\n"
    text = f"Wähle, dann ruf an.{delimiter}Choose, then call.\r\n{ends}"
    path = write(tmp_path / name, text.encode(encoding))
    corpus = ParallelCorpus.from_table(path, encoding=encoding, delimiter=delimiter)
    last = ("Ü\n;", 'o "p"') if name == "t.csv" else ("Ü;", "o p")
    assert list(corpus) == [("Wähle, dann ruf an.", "Choose, then call."), last]


def test_two_columns_need_no_names(table):
    corpus = ParallelCorpus.from_table(table(PAIRS))
    assert list(corpus) == PAIRS and corpus.line_numbers.tolist() == [1, 2]


def test_digest_is_that_of_two_files(table, tmp_path):
    from_table = ParallelCorpus.from_table(table(ROWS), ("de", "en"))
    sides = zip(*PAIRS, strict=True)
    paths = [
        write(tmp_path / f"side{i}", "\n".join(each)) for i, each in enumerate(sides)
    ]
    assert from_table.digest == ParallelCorpus.from_files(*paths).digest


def test_empty_pairs_are_reported(table):
    corpus = ParallelCorpus.from_table(table([*PAIRS, ["a", " "], ["", "b"], ["", ""]]))
    assert list(corpus) == PAIRS and corpus.report == {"empty": [3, 4, 5]}


def test_empty_lines_are_empty_pairs(tmp_path):
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
def test_csv_round_trip(tmp_path_factory, pairs):
    rows = [("source", "target"), *pairs, ("last", "pair")]
    path = write(tmp_path_factory.mktemp("csv") / "t.csv", as_csv(rows))
    corpus = ParallelCorpus.from_table(path, ("source", "target"))
    full = [pair for pair in pairs if all(map(str.strip, pair))]
    assert list(corpus) == [*full, ("last", "pair")]


def test_tab_separated_quotes_are_characters(tmp_path):
    path = write(tmp_path / "t.tsv", '"Ja", sagt er.\t"Yes\n"a\tb"\n')
    corpus = ParallelCorpus.from_table(path)
    assert list(corpus) == [('"Ja", sagt er.', '"Yes'), ('"a', 'b"')]
