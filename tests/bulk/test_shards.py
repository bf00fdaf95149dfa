"""Files in, files of the same names out, line for line, through every kill."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keras_vanilla._progress import Progress
from keras_vanilla.bulk import LineCommand, translate_shards
from keras_vanilla.bulk import shard as shard_module
from keras_vanilla.bulk import shards as shards_module

KILLED = Path(__file__).with_name("killed_shards.py")


def killed(model, sources, out, windows):
    """A run that kills itself after some windows of 8 lines."""
    command = [sys.executable, KILLED, model, out, "8", windows, *sources]
    return subprocess.run(list(map(str, command)), capture_output=True)


def text_of(path):
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


def test_line_for_line_under_the_same_names(
    sources, out, trained_file, trained_translator, unseen_sentences
):
    totals = translate_shards(trained_file, sources, out)
    assert totals == (74, 2)
    expected = trained_translator.translate(unseen_sentences[:72])
    first, second, third = (text_of(out / path.name) for path in sources)
    assert first == "\n".join(expected[:40]) + "\n"
    assert second == "\n".join(expected[40:70]) + "\n"
    assert third == f"{expected[70]}\n\n\n{expected[71]}\n"


def test_bad_lines_are_named(sources, out, trained_file):
    translate_shards(trained_file, sources, out)
    rows = (out / "problems.tsv").read_text().splitlines()
    first, second = (row.split("\t") for row in rows)
    assert first == ["part-3.txt", "2", "byte 0xe9 at column 4 is not UTF-8"]
    assert second[:2] == ["part-3.txt", "3"]
    assert re.fullmatch(r"\d+ tokens; the model takes \d+", second[2])


def test_an_empty_file_has_an_empty_translation(out, tmp_path, trained_file):
    (tmp_path / "empty.txt").touch()
    assert translate_shards(trained_file, [tmp_path / "empty.txt"], out) == (0, 0)
    assert (out / "empty.txt").read_bytes() == b""
    assert not (out / "problems.tsv").exists()


def test_what_is_done_is_not_done_again(sources, out, trained_file, monkeypatch):
    expected = translate_shards(trained_file, sources, out)
    monkeypatch.setattr(shard_module, "open_line_translator", None)
    assert translate_shards(trained_file, sources, out) == expected


def test_a_translation_that_was_removed_is_made_again(sources, out, trained_file):
    translate_shards(trained_file, sources, out)
    before = (out / "part-1.txt").read_bytes()
    (out / "part-1.txt").unlink()
    translate_shards(trained_file, sources, out)
    assert (out / "part-1.txt").read_bytes() == before


def test_more_files_may_come_later(sources, out, trained_file):
    translate_shards(trained_file, sources[:1], out)
    assert translate_shards(trained_file, sources, out) == (74, 2)


def test_a_killed_run_goes_on_where_it_was(
    sources, out, tmp_path, trained_file, monkeypatch
):
    windows = 4
    monkeypatch.setattr(shard_module, "WINDOW", 8)
    translate_shards(trained_file, sources, tmp_path / "whole")
    result = killed(trained_file, sources, out, windows)
    assert result.returncode == -signal.SIGKILL, result.stderr
    assert {path.name for path in out.glob("part*")} < {path.name for path in sources}
    folder = out / ".translating" / "part-1.txt"
    assert json.loads((folder / "journal.json").read_text())["lines"] == 8 * windows
    with open(folder / "text", "ab") as file:
        file.write(b"half a li")  # what was on its way to the disk

    translated = []
    original = shard_module.ShardTranslator._window

    def window(self, lines, *rest):
        translated.extend(lines)
        return original(self, lines, *rest)

    monkeypatch.setattr(shard_module.ShardTranslator, "_window", window)
    translate_shards(trained_file, sources, out)
    assert len(translated) == 74 - 8 * windows
    for path in sources:
        assert text_of(out / path.name) == text_of(tmp_path / "whole" / path.name)


def test_a_source_that_changed_below_a_half_done_shard_is_refused(
    sources, out, trained_file, monkeypatch
):
    monkeypatch.setattr(shard_module, "WINDOW", 8)
    original = shard_module.ShardTranslator._window
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        windows = iter([original])  # the second is interrupted

        def window(*arguments):
            for translate in windows:
                return translate(*arguments)
            raise KeyboardInterrupt

        patch.setattr(shard_module.ShardTranslator, "_window", window)
        translate_shards(trained_file, sources, out)
    sources[0].write_bytes(b"another\n" + sources[0].read_bytes())
    with pytest.raises(ValueError, match="part-1.txt has changed: .*8 lines"):
        translate_shards(trained_file, sources, out)


def test_a_source_that_changed_after_its_translation_is_refused(
    sources, out, trained_file
):
    translate_shards(trained_file, sources, out)
    sources[0].write_bytes(sources[0].read_bytes() + b"one more\n")
    with pytest.raises(ValueError, match="part-1.txt has changed since"):
        translate_shards(trained_file, sources, out)


def test_a_copy_of_a_source_is_the_same_source(sources, out, trained_file):
    expected = translate_shards(trained_file, sources, out)
    os.utime(sources[0], (1, 1))
    assert translate_shards(trained_file, sources, out) == expected


def test_a_second_run_at_once_is_refused(sources, out, trained_file):
    with shards_module.folder_lock(out / ".translating"):
        with pytest.raises(OSError, match=f"in use by another process.*{os.getpid()}"):
            translate_shards(trained_file, sources, out)
    assert not list(out.glob("part*"))


def test_a_file_of_somebody_else_is_refused(sources, out, trained_file):
    out.mkdir()
    (out / "part-2.txt.gz").write_text("mine")
    with pytest.raises(FileExistsError, match="part-2.txt.gz exists already"):
        translate_shards(trained_file, sources, out)
    assert (out / "part-2.txt.gz").read_text() == "mine"


def test_translations_beside_their_sources_are_refused(sources, trained_file):
    with pytest.raises(FileExistsError, match="part-1.txt exists already"):
        translate_shards(trained_file, sources, sources[0].parent)


@pytest.mark.parametrize("settings", [{"beam_size": 2}, {"max_length": 30}])
def test_another_search_is_refused(settings, sources, out, trained_file):
    translate_shards(trained_file, sources[:1], out)
    with pytest.raises(ValueError, match="begun with another search.*another folder"):
        translate_shards(trained_file, sources, out, **settings)


def test_another_model_is_refused(sources, out, trained_file, trained_translator):
    translate_shards(trained_file, sources[:1], out)
    other = trained_translator.copy()
    other.model.set_weights([1.5 * each for each in other.model.get_weights()])
    other.save(out.parent / "other.keras")
    with pytest.raises(ValueError, match="begun with another model"):
        translate_shards(out.parent / "other.keras", sources, out)


def test_a_search_that_was_refused_does_not_bind(sources, out, trained_file):
    with pytest.raises(ValueError, match="`beam_size`"):
        translate_shards(trained_file, sources, out, beam_size=0)
    assert translate_shards(trained_file, sources, out) == (74, 2)


def test_a_model_that_does_not_exist_is_named(sources, out):
    with pytest.raises(FileNotFoundError, match="no file or folder .*nowhere.keras"):
        translate_shards("nowhere.keras", sources, out)
    assert not out.exists()


def test_two_files_of_one_name_are_refused(sources, out, tmp_path, trained_file):
    (tmp_path / "part-1.txt").touch()
    with pytest.raises(ValueError, match="a name of its own.*part-1.txt"):
        translate_shards(trained_file, [*sources, tmp_path / "part-1.txt"], out)


def test_a_damaged_source_is_named(sources, out, trained_file):
    sources[1].write_bytes(sources[1].read_bytes()[:-30])
    with pytest.raises(ValueError, match="part-2.txt.gz is not a whole .gz file"):
        translate_shards(trained_file, sources, out)


def test_a_damaged_journal_is_named(sources, out, trained_file):
    translate_shards(trained_file, sources, out)
    (out / ".translating/part-1.txt/journal.json").write_text("{")
    with pytest.raises(ValueError, match="journal.json is damaged: remove"):
        translate_shards(trained_file, sources, out)


def test_a_source_that_does_not_exist_is_named(out, tmp_path, trained_file):
    with pytest.raises(FileNotFoundError, match="no file .*nothing.txt"):
        translate_shards(trained_file, [tmp_path / "nothing.txt"], out)


def test_workers_are_for_ray(sources, out, trained_file):
    with pytest.raises(ValueError, match="`workers` is for the engine 'ray'"):
        translate_shards(trained_file, sources, out, workers=2)


def test_an_unknown_engine_is_refused(sources, out, trained_file):
    with pytest.raises(ValueError, match="`engine`"):
        translate_shards(trained_file, sources, out, engine="spark")


def test_counts_the_lines_of_this_run(sources, out, trained_file, capsys):
    with Progress("Translating", None, "lines") as progress:
        translate_shards(trained_file, sources, out, progress=progress)
    assert progress.count == 74
    with Progress("Translating", None, "lines") as progress:
        translate_shards(trained_file, sources, out, progress=progress)
    assert progress.count == 0


def test_a_program_translates_and_another_one_is_refused(sources, out):
    assert translate_shards(LineCommand("cat"), sources[:2], out) == (70, 0)
    assert text_of(out / "part-1.txt") == text_of(sources[0])
    assert translate_shards(LineCommand("cat"), sources[:2], out) == (70, 0)
    with pytest.raises(ValueError, match="begun with another model: cat. Received: ta"):
        translate_shards(LineCommand("tac"), sources[:2], out)


def test_ray_takes_one_path(sources, out):
    with pytest.raises(ValueError, match="'ray' takes one path"):
        translate_shards(LineCommand("cat"), sources, out, engine="ray")
