import gzip
import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.data import ParallelCorpus, shards
from keras_vanilla.data.shards import digests, names_of, parts, shard_paths


def write(path, content):
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def shard_files(folder, *texts, suffix=""):
    """Sources and targets of shards, from (source text, target text) of each."""
    sides = ([], [])
    for number, pair in enumerate(texts):
        for side, name, text in zip(sides, "st", pair, strict=True):
            side.append(write(folder / f"{name}{number}{suffix}", text))
    return sides


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_parts_hold_every_line_once_whatever_their_size(
    tmp_path, monkeypatch, suffix, block
):
    monkeypatch.setattr(shards, "BLOCK", block)
    texts = [
        ("\ufeffa\r\nbé\n\nd", "1\n2\n3\n4\n"),
        ("", ""),
        ("\ufeffe\n", "5"),
        ("f\ng\u2028\n h\ni\nj\n", "6\n7\n8\n9\n0"),
    ]
    files = shard_paths(*shard_files(tmp_path, *texts, suffix=suffix))
    expected = list(
        enumerate(zip(["a", "bé", "", "d", "e", "f", "g\u2028", " h", "i", "j"],
                      "1234567890", strict=True), start=1)
    )  # fmt: skip
    for lines in (1, 2, 3, 5, 100):
        cut = parts(files, lines)
        assert max(part.lines for part in cut) <= lines
        found = [row for part in cut for row in part.pairs()]
        assert [(n, (s.decode(), t.decode())) for n, s, t in found] == expected
        assert [len(list(part.pairs())) for part in cut] == [p.lines for p in cut]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("ab\n\r\x85", max_size=12), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_parts_read_what_a_corpus_reads(tmp_path_factory, texts, lines):
    folder = tmp_path_factory.mktemp("shards")
    sources, targets = shard_files(folder, *((text, text) for text in texts))
    cut = parts(shard_paths(sources, targets), lines)
    found = [(n, s.decode()) for part in cut for n, s, _ in part.pairs()]
    full = [(n, line) for n, line in found if line.strip()]
    if not full:
        with pytest.raises(ValueError, match="has text on both sides"):
            ParallelCorpus.from_files(sources, targets)
        return
    corpus = ParallelCorpus.from_files(sources, targets)
    numbered = zip(corpus.line_numbers.tolist(), corpus.sources, strict=True)
    assert list(numbered) == full


def test_one_path_is_one_shard(tmp_path):
    assert shard_paths("a", tmp_path / "b") == [("a", str(tmp_path / "b"))]
    assert shard_paths(iter(["a", "c"]), ("b", "d")) == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize(
    "source, target, received",
    [("a", ["b", "c"], "1 source and 2 target"), ([], [], "0 source and 0 target")],
)
def test_files_without_their_translation_are_refused(source, target, received):
    with pytest.raises(ValueError, match=f"Received: {received} files"):
        shard_paths(source, target)


def test_unequal_lines_of_one_shard_are_refused_though_the_sums_agree(tmp_path):
    files = shard_files(tmp_path, ("a\nb\n", "1\n"), ("c\n", "2\n3"))
    message = r"s0 and .*t0: 2 source lines, 1 target lines"
    with pytest.raises(ValueError, match=message):
        parts(shard_paths(*files), 9)
    with pytest.raises(ValueError, match=message):
        ParallelCorpus.from_files(*files)


def test_bytes_that_are_not_utf8_are_refused_with_file_and_line(tmp_path):
    files = shard_files(tmp_path, ("a\n", "1\n"), ("b\nc\nd\n", b"2\n3\n\xe94\n"))
    *_, last = parts(shard_paths(*files), 2)
    with pytest.raises(ValueError, match=r"t1, line 3: byte 0xe9 at column 1"):
        list(last.pairs())


def test_a_damaged_gzip_file_a_missing_one_and_a_folder_are_refused_by_name(tmp_path):
    whole = write(tmp_path / "a.gz", "words\n" * 99)
    cut = tmp_path / "cut.gz"
    cut.write_bytes(whole.read_bytes()[:-9])
    with pytest.raises(ValueError, match="cut.gz is not a whole gzip file"):
        parts([(str(whole), str(cut))], 9)
    with pytest.raises(FileNotFoundError, match="gone"):
        parts([(str(whole), "gone")], 9)
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        parts([(str(whole), str(tmp_path))], 9)


def test_digests_are_sha256_of_the_files(tmp_path):
    files = [write(tmp_path / name, text) for name, text in (("a", "x"), ("b", "y"))]
    expected = [hashlib.sha256(text).hexdigest() for text in (b"x", b"y")]
    assert digests(files) == expected


def test_many_shards_have_a_short_name():
    files = [(f"s{n}", f"t{n}") for n in range(9)]
    assert names_of(files) == "s0, s1, s2, ... and t0, t1, t2, ..."
    assert names_of(files[:1]) == "s0 and t0"
