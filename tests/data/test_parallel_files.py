import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.data import ParallelCorpus
from keras_vanilla.data.lines import count_lines, lines_of, names_of, paired_paths


def write(path, content):
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def parallel_files(folder, *texts, suffix=""):
    """Paths of sources and of targets, from the texts of each pair of files."""
    sides = ([], [])
    for number, pair in enumerate(texts):
        for side, name, text in zip(sides, "st", pair, strict=True):
            side.append(write(folder / f"{name}{number}{suffix}", text))
    return sides


@settings(max_examples=60, deadline=None)
@given(st.text("ab\n\r\x85", max_size=12), st.sampled_from(["", ".gz"]))
def test_lines_are_counted_as_they_are_read(tmp_path_factory, text, suffix):
    path = write(tmp_path_factory.mktemp("lines") / f"a{suffix}", text)
    assert count_lines(path) == len(list(lines_of(path)))


def test_one_path_is_one_pair_of_files(tmp_path):
    assert paired_paths("a", tmp_path / "b") == [("a", str(tmp_path / "b"))]
    assert paired_paths(iter(["a", "c"]), ("b", "d")) == [("a", "b"), ("c", "d")]


def test_line_counts_are_compared_per_pair_of_files(tmp_path):
    files = parallel_files(tmp_path, ("a\nb\n", "1\n"), ("c\n", "2\n3"))
    message = r"s0 and .*t0: 2 source lines, 1 target lines"
    with pytest.raises(ValueError, match=message):
        ParallelCorpus.from_files(*files)


def test_many_files_have_a_short_name():
    files = [(f"s{n}", f"t{n}") for n in range(9)]
    assert names_of(files) == "s0, s1, s2, ... and t0, t1, t2, ..."
    assert names_of(files[:1]) == "s0 and t0"
