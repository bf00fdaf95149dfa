"""Commands accept the name of a pretrained model."""

import shlex

import pytest

from keras_vanilla._about import About
from keras_vanilla.cli import main, parser
from keras_vanilla.cli.console import example_of, model_name, model_path, quoted
from keras_vanilla.pretrained import pretrained_file

PATH, TFLITE = (str(pretrained_file("en-fr", end)) for end in (".keras", ".tflite"))
COMMANDS = {
    "translate en-fr hello": "model",
    "evaluate en-fr --source a --reference b": "model",
    "export en-fr en-fr.tflite": "model",
    "verify en-fr file.tflite --source a": "model",
    "convert en-fr folder --format ctranslate2": "model",
    "plot attention en-fr hello --output picture.png": "model",
    "train --from en-fr --source a --target b --output c": "start",
    "distil en-fr --source a --output b": "teacher",
    "serve-web en-fr": "model",
    "describe en-fr": "file",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_name_becomes_the_path_of_its_file(command, tmp_path, monkeypatch):
    options = parser().parse_args(command.split())
    takes_tflite = command in ("serve-web en-fr", "describe en-fr")
    expected = TFLITE if takes_tflite else PATH
    assert getattr(options, COMMANDS[command]) == expected
    for path in ("missing.keras", "folder/en-fr", "./en-de", "hub:a/b"):
        assert model_path(path) == path
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en-fr").mkdir()  # it takes precedence
    assert model_path("en-fr") == "en-fr"


def test_describe_en_fr(capsys):
    assert main(["describe", "en-fr"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("en-fr: ") and "English to French" in out


@pytest.mark.parametrize("path", [PATH, "mine.keras"])
def test_messages_name_the_model_as_given(path):
    assert model_name(path) == ("en-fr" if path == PATH else path)


@pytest.mark.parametrize(
    "text, expected",
    [("It didn't.", '"It didn\'t."'), ("$5", "'$5'"), ('"no"', "'\"no\"'")],
)
def test_example_is_quoted_for_a_shell(text, expected):
    assert example_of(About(examples=[text])) == expected
    assert shlex.split(expected) == [text]


def test_hints_on_windows_are_quoted_for_cmd(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("os.name", "nt")
        path, example = quoted(r"C:\My models\a.tflite"), quoted('He said "no".')
        with_sign = quoted(r"C:\R&D\a.tflite")
    assert path == r'"C:\My models\a.tflite"'
    assert example == '"He said ""no""."'
    assert with_sign == r'"C:\R&D\a.tflite"'
