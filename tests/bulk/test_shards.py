"""Files in, files of the same names out, line for line, through every kill."""

import gzip
import os
import re
from pathlib import Path

import pytest
from child_process import run

from keras_vanilla._progress import Progress
from keras_vanilla.bulk import shard as shard_module
from keras_vanilla.bulk import translate_shards

KILLED = Path(__file__).with_name("killed_at_each_write.py")
RECORDS = "run.json", "part-1.txt/record.json"


def text_of(path):
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def test_translations_have_the_names_and_lines_of_sources(
    sources, out, trained_file, trained_translator, unseen_sentences
):
    totals = translate_shards(trained_file, sources, out)
    assert totals == (74, 2)
    expected = trained_translator.translate(unseen_sentences[:72])
    first, second, third = (text_of(out / path.name) for path in sources)
    assert first == "\n".join(expected[:40]) + "\n"
    assert second == "\n".join(expected[40:70]) + "\n"
    assert third == f"{expected[70]}\n\n\n{expected[71]}\n"
    rows = (out / "problems.tsv").read_text().splitlines()
    first, second = (row.split("\t") for row in rows)
    assert first == ["part-3.txt", "2", "byte 0xe9 at column 4 is not UTF-8"]
    assert second[:2] == ["part-3.txt", "3"]
    assert re.fullmatch(r"\d+ tokens; the model takes \d+", second[2])


def test_removed_and_empty_files_are_translated(sources, out, trained_file):
    empty = sources[0].with_name("empty.txt")
    empty.touch()
    assert translate_shards(trained_file, [empty, sources[0]], out) == (40, 0)
    assert (out / "empty.txt").read_bytes() == b""
    assert not (out / "problems.tsv").exists()
    before = (out / "part-1.txt").read_bytes()
    (out / "part-1.txt").unlink()
    translate_shards(trained_file, [empty, sources[0]], out)
    assert (out / "part-1.txt").read_bytes() == before


def test_windows_are_in_order(sources, out, tmp_path, trained_file, monkeypatch):
    translate_shards(trained_file, sources, tmp_path / "whole")
    monkeypatch.setattr(shard_module, "WINDOW", 8)
    with Progress("Translating", None, "lines") as progress:
        translate_shards(trained_file, sources, out, progress=progress)
    assert progress.count == 74
    for path in [*sources, Path("problems.tsv")]:
        assert text_of(out / path.name) == text_of(tmp_path / "whole" / path.name)


def test_finished_files_are_kept(sources, out, trained_file, monkeypatch):
    first = translate_shards(trained_file, sources[:1], out)
    assert first == (40, 0)
    expected = translate_shards(trained_file, sources, out)  # more files
    assert expected == (74, 2)
    monkeypatch.setattr(shard_module, "open_line_translator", None)
    os.utime(sources[0], (1, 1))  # as in a copy
    with Progress("Translating", None, "lines") as progress:
        totals = translate_shards(trained_file, sources, out, progress=progress)
    assert (totals, progress.count) == (expected, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process at each write")
def test_kills_at_each_write_leave_whole_files(tmp_path):
    assert int(run(KILLED, tmp_path)) > 25


@pytest.mark.parametrize("name", ["part-1.txt", "part-2.txt.gz"])
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("damage", [b"one more\n", None, b"\0"])
def test_changed_bytes_are_refused(sources, out, trained_file, name, side, damage):
    """The kind: what one file says of the bytes in another."""
    translate_shards(trained_file, sources, out)
    path = out / name if side == "target" else sources[0].parent / name
    content = path.read_bytes()
    path.write_bytes(content[:-5] if damage is None else content + damage)
    with pytest.raises(ValueError, match=f"{path} has changed .* Remove {out / name}"):
        translate_shards(trained_file, sources, out)


@pytest.mark.parametrize("name", RECORDS)
def test_damaged_records_are_refused(sources, out, trained_file, name):
    """Each cut, and each digit or letter that becomes another one."""
    translate_shards(trained_file, sources[:1], out)
    path = out / ".translating" / name
    whole = path.read_bytes()
    damaged = [whole[:size] for size in range(0, len(whole), 7)]
    for i in range(0, len(whole), 3):
        damaged.append(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{path} is damaged"):
            translate_shards(trained_file, sources[:1], out)


def test_lost_record_is_refused(sources, out, trained_file):
    translate_shards(trained_file, sources[:1], out)
    (out / ".translating/run.json").unlink()
    with pytest.raises(FileNotFoundError, match="run.json"):
        translate_shards(trained_file, sources[:1], out)
    (out / ".translating/part-1.txt/record.json").unlink()
    with pytest.raises(FileExistsError, match="part-1.txt exists already"):
        translate_shards(trained_file, sources[:1], out)


@pytest.mark.parametrize("settings", [{"beam_size": 2}, {"max_length": 30}])
def test_another_search_is_refused(settings, sources, out, trained_file):
    translate_shards(trained_file, sources[:1], out)
    with pytest.raises(ValueError, match="begun with another search.*another folder"):
        translate_shards(trained_file, sources, out, **settings)


def test_refused_search_does_not_bind_the_folder(sources, out, trained_file):
    with pytest.raises(ValueError, match="`beam_size`"):
        translate_shards(trained_file, sources, out, beam_size=0)
    assert translate_shards(trained_file, sources, out) == (74, 2)
