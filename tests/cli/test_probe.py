"""`keras-vanilla probe`, as a person meets it."""

import json
import sys

import pytest

from keras_vanilla import bulk
from keras_vanilla.bulk import LineTranslation
from keras_vanilla.cli import main

ECHO = f"{sys.executable} -c 'import sys; sys.stdout.write(sys.stdin.read())'"


@pytest.fixture
def settings(monkeypatch):
    """What the model is opened with; it copies everything."""
    given = {}

    def open_line_translator(model, **search):
        given.update(search, model=model)
        return lambda texts: [LineTranslation(text) for text in texts]

    monkeypatch.setattr(bulk, "open_line_translator", open_line_translator)
    return given


def test_any_program_that_reads_and_writes_lines(capsys):
    command = ["probe", "--command", ECHO, "--count", "3"]
    assert main(command) == 0
    assert "copied 100.0%, loops 0 of 54" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["lines"] == 54
    assert {kind["kind"] for kind in result["kinds"]} > {"URL", "upper case", "empty"}


def test_a_model_and_its_search(settings, capsys):
    command = ["probe", "model.keras", "--count", "2", "--beam-size", "4"]
    assert main([*command, "--language", "fr"]) == 0
    assert settings == {"model": "model.keras", "beam_size": 4}


def test_failures_are_shown(capsys):
    command = ECHO.replace("read()", "read().lower()")
    assert main(["probe", "--command", command, "--count", "2", "--failures"]) == 0
    assert "name: 'Ein Mann liest eine Zeitung " in capsys.readouterr().out


def test_sentences_of_your_own(tmp_path, settings, capsys):
    (tmp_path / "own.txt").write_text("Een man leest.\nTwee mannen lezen.\n")
    command = ["probe", "model.keras", "--count", "1"]
    assert main([*command, "--sentences", str(tmp_path / "own.txt")]) == 0


@pytest.mark.parametrize(
    "options, message",
    [
        ([], "Give a MODEL or a --command, one of the two."),
        (["m.keras", "--command", "cat"], "Give a MODEL or a --command"),
        (["m.keras", "--language", "xx"], "must be one of de, en, es, fr; for others"),
        (["--command", "cat", "--beam-size", "4"], "a --command has its own"),
        (["--command", "false"], "false failed with status 1"),
        (["--command", "true"], "true must write a line for each of"),
        (["--command", "no-such-program"], "no-such-program"),
        (["--command", "cat", "--count", "0"], "`count` must be at least 1"),
        (["m.keras", "--json", "--failures"], "leave --failures out"),
    ],
)
def test_what_cannot_be_done_is_said(options, message, capsys):
    assert main(["probe", *options]) == 1
    assert message in capsys.readouterr().err


def test_language_and_sentences_are_one_too_many(tmp_path, capsys):
    (tmp_path / "own.txt").write_text("Een man leest.\n")
    options = ["--language", "de", "--sentences", str(tmp_path / "own.txt")]
    assert main(["probe", "--command", "cat", *options]) == 1
    assert "--language or --sentences" in capsys.readouterr().err
