"""Commands accept the name of a pretrained model."""

import shlex

import pytest

from keras_vanilla._about import About
from keras_vanilla.cli import main, parser
from keras_vanilla.cli.console import example_of, model_name, model_path
from keras_vanilla.pretrained import pretrained_file
from keras_vanilla.translation import Translator

PATH = str(pretrained_file("en-fr"))
COMMANDS = {
    "translate en-fr hello": "model",
    "evaluate en-fr --source a --reference b": "model",
    "export en-fr en-fr.tflite": "model",
    "verify en-fr file.tflite --source a": "model",
    "convert en-fr folder --format ctranslate2": "model",
    "plot attention en-fr hello --output picture.png": "model",
    "train --from en-fr --source a --target b --output c": "start",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_becomes_the_path_of_its_file(command):
    options = parser().parse_args(command.split())
    assert getattr(options, COMMANDS[command]) == PATH


def test_a_teacher_may_be_a_name():
    command = "distil en-fr --source a --output b"
    assert parser().parse_args(command.split()).teacher == PATH


@pytest.mark.parametrize(
    "command, name", [("serve-web", "model"), ("describe", "file")]
)
def test_a_command_for_tflite_files_opens_that_file(command, name):
    options = parser().parse_args([command, "en-fr"])
    assert getattr(options, name) == str(pretrained_file("en-fr", ".tflite"))


def test_describe_en_fr(capsys):
    assert main(["describe", "en-fr"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("en-fr: ") and "English to French" in out


@pytest.mark.parametrize("path", [PATH, "mine.keras"])
def test_messages_have_the_name_that_was_given(path):
    assert model_name(path) == ("en-fr" if path == PATH else path)


@pytest.mark.parametrize(
    "text, quoted",
    [("It didn't.", '"It didn\'t."'), ("$5", "'$5'"), ('"no"', "'\"no\"'")],
)
def test_an_example_is_quoted_for_a_shell(text, quoted):
    assert example_of(About(examples=[text])) == quoted
    assert shlex.split(quoted) == [text]


def test_a_file_with_that_name_takes_precedence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en-fr").mkdir()
    assert model_path("en-fr") == "en-fr"


@pytest.mark.parametrize(
    "path", ["missing.keras", "folder/en-fr", "./en-de", "hub:a/b"]
)
def test_a_path_is_not_a_name(path):
    assert model_path(path) == path


def test_translate_en_fr_loads_its_file(trained_translator, monkeypatch, capfd):
    """`translation/test_pretrained.py` has the translations of the file itself."""
    files = {PATH: trained_translator}
    monkeypatch.setattr(Translator, "load", files.__getitem__)
    assert main(["translate", "en-fr", "one two"]) == 0
    assert capfd.readouterr().out == "twee een\n"
