"""Lines to translate from files, pipes and standard input."""

import os
import sys
import threading

import pytest

from keras_vanilla.cli.input_lines import input_groups

needs_pipes = pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="paths of pipes")


@pytest.fixture
def pipe():
    """The path of a pipe, and the descriptor to write to."""
    reader, writer = os.pipe()
    yield f"/dev/fd/{reader}", writer
    os.close(reader)


def test_file_is_one_group(tmp_path):
    (tmp_path / "in").write_text("one\ntwo\nthree")
    assert input_groups(str(tmp_path / "in"), 2) == [["one", "two", "three"]]


@needs_pipes
@pytest.mark.parametrize("at_once", [False, True])
def test_pipe_is_read_in_full_groups(pipe, at_once):
    path, writer = pipe
    os.write(writer, "één\r\ntwee\n\ndrie\rvier\nvijf".encode())
    os.close(writer)
    groups = list(input_groups(path, 2, at_once))
    lines = ["één", "twee", "", "drie\rvier", "vijf"]
    assert groups == ([lines] if at_once else [lines[:2], lines[2:4], lines[4:]])


@needs_pipes
def test_group_does_not_wait_for_further_lines(pipe):
    path, writer = pipe
    groups = input_groups(path, 9)
    for written, group in [
        (b"one\n", ["one"]),
        (b"two\nthree\nfo", ["two", "three"]),
        (b"ur\n", ["four"]),
    ]:
        os.write(writer, written)
        assert next(groups) == group
    os.close(writer)
    assert list(groups) == []


@needs_pipes
@pytest.mark.parametrize("at_once", [False, True])
def test_non_blocking_input_is_read_to_its_end(pipe, at_once, monkeypatch):
    path, writer = pipe
    with open(int(path.rpartition("/")[2]), closefd=False) as reader:
        monkeypatch.setattr(sys, "stdin", reader)
        os.set_blocking(reader.fileno(), False)

        def write_later():
            os.write(writer, b"o\nthree\n")
            os.close(writer)

        os.write(writer, b"one\ntw")
        threading.Timer(0.2, write_later).start()
        groups = input_groups(None, 9, at_once)
        assert [line for group in groups for line in group] == ["one", "two", "three"]


@needs_pipes
def test_error_comes_after_lines_before_it(pipe):
    path, writer = pipe
    os.write(writer, b"one\ntwo\n\xe9\nthree\n")
    os.close(writer)
    groups = input_groups(path, 9)
    assert next(groups) == ["one", "two"]
    with pytest.raises(ValueError, match=f"{path}, line 3: byte 0xe9 at column 1"):
        next(groups)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        input_groups(str(tmp_path / "nowhere"), 2)
