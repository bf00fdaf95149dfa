import datetime
import gzip

import babel.dates
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from num2words import num2words

from keras_vanilla.data import FileLines, ParallelCorpus, same_digits
from keras_vanilla.data.corpus import read_lines
from keras_vanilla.data.lines import count_lines, lines_of, names_of, paired_paths

SENTENCE = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.fixture(scope="module")
def numbers():
    return ParallelCorpus.numbers()


@pytest.fixture(scope="module")
def digits():
    """Many pairs, each another."""
    return ParallelCorpus(map(str, range(20_000)), map(hex, range(20_000)))


def write(path, content):
    pack = gzip.compress if path.suffix == ".gz" else bytes
    path.write_bytes(pack(content.encode() if isinstance(content, str) else content))
    return path


def files(folder, source, target, suffix=""):
    return (
        write(folder / f"text.en{suffix}", source),
        write(folder / f"text.fr{suffix}", target),
    )


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    "content, lines",
    [
        ("a\nbé\n", ["a", "bé"]),
        ("a\r\nb\r\r\nc", ["a", "b\r", "c"]),
        ("\ufeffa\n\ufeffb\n", ["a", "\ufeffb"]),
        ("a\u2028b\u2029c\x0bd\x0ce\x85f\x1cg\rh\nx", None),
    ],
)
def test_only_newlines_end_lines(tmp_path, suffix, content, lines):
    lines = lines or content.split("\n")
    path = write(tmp_path / f"text{suffix}", content)
    assert read_lines(path) == lines
    if not suffix:
        with open(path, "rb") as stream:
            assert read_lines(stream) == lines
    other = write(tmp_path / f"other{suffix}", "x\n" * len(lines))
    corpus = ParallelCorpus.from_files(path, other)
    assert list(corpus) == [(line, "x") for line in lines] and corpus.report == {}
    assert corpus.line_numbers.tolist() == list(range(1, len(lines) + 1))


def test_empty_pairs_are_reported(tmp_path):
    paths = files(tmp_path, "a\n\n \u3000\nd\ne\n", "1\n2\n3\n\t\n5\n")
    corpus = ParallelCorpus.from_files(*paths)
    assert list(corpus) == [("a", "1"), ("e", "5")]
    assert corpus.report == {"empty": [2, 3, 4]}
    assert corpus.line_numbers.tolist() == [1, 5]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1))
def test_any_text_is_stored_unchanged(pairs):
    full = [bool(s.strip() and t.strip()) for s, t in pairs]
    if not any(full):
        with pytest.raises(ValueError, match="text on both sides"):
            ParallelCorpus(*zip(*pairs, strict=True))
        return
    corpus = ParallelCorpus(*zip(*pairs, strict=True))
    kept = [pair for pair, is_full in zip(pairs, full, strict=True) if is_full]
    assert list(corpus) == kept
    assert [corpus.sources[i] for i in range(-len(kept), 0)] == [s for s, _ in kept]
    left_out = corpus.report.get("empty", [])
    assert sorted([*left_out, *corpus.line_numbers]) == list(range(1, len(pairs) + 1))


@pytest.mark.parametrize("kind", ["path", "link", "copy"])
def test_same_text_on_both_sides_is_refused(tmp_path, kind):
    source, target = files(tmp_path, "a\nb\n", "a\nb\n")
    if kind == "path":
        target = str(source)
    elif kind == "link":
        target = tmp_path / "link"
        target.hardlink_to(source)
    message = (
        "text.en and .* must be a text and its translation. .* learns only to copy"
    )
    with pytest.raises(ValueError, match=message):
        ParallelCorpus.from_files([source], [target])
    lines = read_lines(source)
    assert len(ParallelCorpus(lines, lines)) == 2  # where copying is what is wanted


def test_same_bytes_in_other_lines_are_two_texts(tmp_path):
    corpus = ParallelCorpus.from_files(*files(tmp_path, "a\nbc\n", "ab\nc\n"))
    assert list(corpus) == [("a", "ab"), ("bc", "c")]


def test_without_drops_lines_by_number():
    corpus = ParallelCorpus(["a", " ", "b", "c"], ["1", "2", "3", "4"], origin="text")
    rest = corpus.without([3, 99])
    assert list(rest) == [("a", "1"), ("c", "4")] and rest.origin == "text"
    assert rest.line_numbers.tolist() == [1, 4] and len(corpus) == 3


# Slices, filters and sums


@pytest.fixture
def letters():
    """Lines 1, 3, 4 and 5; line 2 is empty."""
    return ParallelCorpus(list("a bcd"), list("1x234"), origin="letters")


def test_slice_keeps_line_numbers_and_origin(letters):
    part = letters[1:3]
    assert list(part) == [("b", "2"), ("c", "3")] and part.origin == "letters"
    assert part.line_numbers.tolist() == [3, 4] and part.report == {}
    assert list(letters[:6000]) == list(letters)
    assert list(letters[::-2]) == [("d", "4"), ("b", "2")]
    assert letters.report == {"empty": [2]}


def test_index_gives_one_pair(letters):
    assert letters[0] == ("a", "1") and letters[np.int64(-1)] == ("d", "4")
    assert letters.sources[1:] == ["b", "c", "d"]
    with pytest.raises(IndexError):
        letters[4]


def test_filter_reports_lines_left_out(letters):
    kept = letters.filter(lambda source, target: source != "b" and target < "4")
    assert list(kept) == [("a", "1"), ("c", "3")]
    assert kept.line_numbers.tolist() == [1, 4] and kept.origin == "letters"
    assert kept.report == {"empty": [2], "filter": [3, 5]}
    assert kept.filter(lambda *pair: "a" in pair).report["filter"] == [3, 5, 4]


@pytest.mark.parametrize(
    "source, target, same",
    [
        ("$3,000.50 on March 12", "le 12 mars, 3 000,50 $", True),
        ("no number", "aucun", True),
        ("٣ cats", "3 chats", True),
        ("30 cats", "31 chats", False),
        ("3 cats", "trois chats", False),
        ("33 cats", "3 chats", False),
    ],
)
def test_digits_of_pairs_are_compared(source, target, same):
    pairs = ParallelCorpus([source, "a"], [target, "b"]).filter(same_digits)
    assert len(pairs) == 1 + same and pairs.report.get("filter", []) == [1][same:]


def test_sum_has_pairs_of_both_and_one_number_per_line(letters):
    other = ParallelCorpus(["é", "", "f"], ["6", "7", "8"], origin="more")
    both = letters + other
    assert list(both) == [*letters, *other]
    assert both.line_numbers.tolist() == [1, 3, 4, 5, 6, 8]
    assert both.report == {"empty": [2, 7]} and both.origin == "letters and more"
    assert list(both.without([6])) == [*letters, ("f", "8")]
    assert (letters + letters).line_numbers.tolist() == [1, 3, 4, 5, 6, 8, 9, 10]
    assert other.report == {"empty": [2]}
    with pytest.raises(TypeError):
        letters + [("a", "b")]


def test_sum_of_parts_of_one_text_keeps_their_lines(letters):
    both = letters[2:] + letters[:1]
    assert list(both) == [("c", "3"), ("d", "4"), ("a", "1")]
    assert both.line_numbers.tolist() == [4, 5, 1] and both.origin == "letters"
    rest, part = letters.split(1)
    together = rest + part
    assert sorted(together) == list(letters) and together.report == letters.report


def test_pairs_in_memory_are_a_corpus():
    pairs = (pair for pair in [("one", "een"), ["two", "twee"], ("", "drie")])
    corpus = ParallelCorpus.from_pairs(pairs, origin="mine")
    assert list(corpus) == [("one", "een"), ("two", "twee")]
    assert corpus.report == {"empty": [3]} and corpus.origin == "mine"


@pytest.mark.full
def test_numbers_are_those_of_num2words_and_babel(numbers):
    assert len(numbers) == 10_000 + 73_049
    for n in (0, 21, 2371, 9999):
        assert numbers.sources[n] == num2words(n, lang="en")
        assert numbers.targets[n] == num2words(n, lang="fr")
    first = datetime.date(1900, 1, 1)
    for day in (0, 59, 36_583, 73_048):
        for lines, language in ((numbers.sources, "en"), (numbers.targets, "fr")):
            date = first + datetime.timedelta(day)
            text = babel.dates.format_date(date, format="full", locale=language)
            assert lines[10_000 + day] == text
    assert numbers.sources[10_000 + 36_583] == "Tuesday, February 29, 2000"
    assert numbers.targets[-1] == "jeudi 31 décembre 2099"
    assert numbers.report == {}


def test_split_partitions_corpus_by_seed(digits):
    rest, valid, test = digits.split(300, 200)
    one, same, other = (list(digits.split(50, seed=seed)[1]) for seed in (7, 7, 8))
    assert one == same != other
    assert (len(rest), len(valid), len(test)) == (len(digits) - 500, 300, 200)
    together = np.concatenate([part.line_numbers for part in (rest, valid, test)])
    assert sorted(together) == digits.line_numbers.tolist()
    for part in (valid, test):
        for pair, number in zip(part, part.line_numbers, strict=True):
            assert pair == (digits.sources[number - 1], digits.targets[number - 1])


SHARED = st.lists(
    st.tuples(st.sampled_from("abcdefghijkl"), st.sampled_from("mnopqrstuvwx")),
    min_size=2,
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(SHARED, st.integers(1, 12), st.integers(0, 3))
def test_split_keeps_shared_sentences_together(pairs, size, seed):
    corpus = ParallelCorpus(*zip(*pairs, strict=True))
    try:
        rest, part = corpus.split(size, seed=seed)
    except ValueError as error:
        assert "Received: sizes" in str(error) or "stay together" in str(error)
        return
    assert len(part) == size
    assert not set(rest.sources) & set(part.sources)
    assert not set(rest.targets) & set(part.targets)
    assert sorted([*rest, *part]) == sorted(pairs)


# Files


def test_file_lines_are_read_again(tmp_path):
    files = write(tmp_path / "a", "\ufeffone\r\n\nthrée\u2028\n"), tmp_path / "b.gz"
    write(files[1], "four\nfive")
    lines = FileLines(*files)
    for _ in range(2):
        assert list(lines) == ["one", "", "thrée\u2028", "four", "five"]
    assert len(lines) == 5


@settings(max_examples=60, deadline=None)
@given(st.text("ab\n\r\x85", max_size=12), st.sampled_from(["", ".gz"]))
def test_lines_are_counted_as_they_are_read(tmp_path_factory, text, suffix):
    path = write(tmp_path_factory.mktemp("lines") / f"a{suffix}", text)
    assert count_lines(path) == len(list(lines_of(path)))


def test_one_path_is_one_pair_of_files(tmp_path):
    assert paired_paths("a", tmp_path / "b") == [("a", str(tmp_path / "b"))]
    assert paired_paths(iter(["a", "c"]), ("b", "d")) == [("a", "b"), ("c", "d")]


def test_line_counts_are_compared_per_pair_of_files(tmp_path):
    texts = {"s0": "a\nb\n", "s1": "c\n", "t0": "1\n", "t1": "2\n3"}
    paths = [write(tmp_path / name, text) for name, text in texts.items()]
    with pytest.raises(ValueError, match="s0 and .*t0: 2 source lines, 1 target lines"):
        ParallelCorpus.from_files(paths[:2], paths[2:])


def test_many_files_have_short_name():
    files = [(f"s{n}", f"t{n}") for n in range(9)]
    assert names_of(files) == "s0, s1, s2, ... and t0, t1, t2, ..."
    assert names_of(files[:1]) == "s0 and t0"
