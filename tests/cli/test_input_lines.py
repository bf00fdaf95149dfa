"""Lines to translate from files, pipes and standard input."""

import os
import queue

import pytest

from keras_vanilla.cli.input_lines import as_they_come, input_groups


def test_a_group_does_not_wait_for_a_second_item():
    arriving = queue.Queue()
    groups = as_they_come(iter(arriving.get, None), 10, seconds=0.01)
    for item in ("one", "two"):
        arriving.put(item)
        assert next(groups) == [item]
    arriving.put(None)
    assert list(groups) == []


def test_items_that_are_there_come_in_full_groups():
    assert list(as_they_come(iter(range(7)), 3)) == [[0, 1, 2], [3, 4, 5], [6]]


def test_an_error_comes_after_the_items_before_it():
    def broken():
        yield "one"
        raise ValueError("broken")

    groups = as_they_come(broken(), 3)
    assert next(groups) == ["one"]
    with pytest.raises(ValueError, match="broken"):
        next(groups)


def test_a_file_is_one_group(tmp_path):
    (tmp_path / "in").write_text("one\ntwo\nthree")
    assert input_groups(str(tmp_path / "in"), 2) == [["one", "two", "three"]]


@pytest.mark.skipif(not hasattr(os, "pipe2"), reason="needs paths of pipes")
@pytest.mark.parametrize("at_once", [False, True])
def test_a_pipe_is_read_by_its_path(at_once):
    reader, writer = os.pipe()
    os.write(writer, "één\r\ntwee\ndrie".encode())
    os.close(writer)
    groups = input_groups(f"/dev/fd/{reader}", 2, at_once)
    assert isinstance(groups, list) is at_once
    assert sum(groups, []) == ["één", "twee", "drie"]
    os.close(reader)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        input_groups(str(tmp_path / "nowhere"), 2)
