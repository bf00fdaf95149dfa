"""`keras-vanilla translate --output-dir`: many files, as a person meets it."""

import pytest

from keras_vanilla import bulk
from keras_vanilla.cli import main


@pytest.fixture
def files(tmp_path, unseen_sentences):
    for number in (1, 2):
        lines = unseen_sentences[20 * number : 20 * number + 20]
        (tmp_path / f"part-{number}.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "part-none").mkdir()  # a folder is no file
    return tmp_path


@pytest.fixture
def called(monkeypatch):
    """What the library is called with, without a model."""
    calls = []

    def translate_shards(*arguments, progress, **settings):
        calls.append((*arguments, settings))
        return 40, 0

    monkeypatch.setattr(bulk, "translate_shards", translate_shards)
    return calls


def translate(files, *options, model="model.keras"):
    pattern = str(files / "part-*")
    out = str(files / "out")
    command = ["translate", str(model), "--input", pattern, "--output-dir", out]
    return main([*command, *options])


def test_files_in_files_out(
    files, trained_file, trained_translator, unseen_sentences, capfd
):
    (files / "part-2.txt").write_bytes(b"\xff\n")
    assert translate(files, model=trained_file) == 3
    expected = trained_translator.translate(unseen_sentences[20:40])
    assert (files / "out/part-1.txt").read_text() == "\n".join(expected) + "\n"
    errors = capfd.readouterr().err
    assert "21 lines of 2 files are in" in errors
    assert "Lines with problems: 1. They are named in " in errors


def test_keep_going_ignores_problems(files, monkeypatch):
    monkeypatch.setattr(bulk, "translate_shards", lambda *_, **__: (40, 2))
    assert translate(files) == 3
    assert translate(files, "--keep-going") == 0


def test_given_settings_reach_library(files, called):
    assert translate(files) == 0
    options = "--engine ray --workers 3 --threads 2 --beam-size 4 --max-length 99"
    assert translate(files, *options.split(), "--length-penalty", "1.0") == 0
    (model, sources, folder, plain), (*_, settings) = called
    names = {source.rpartition("/")[2] for source in sources}
    assert names == {"part-1.txt", "part-2.txt"}
    assert (model, folder) == ("model.keras", str(files / "out"))
    assert plain == {"engine": "local", "workers": None}
    assert settings == {
        "engine": "ray",
        "workers": 3,
        "threads": 2,
        "beam_size": 4,
        "length_penalty": 1.0,
        "max_length": 99,
    }
