"""The command line starts quickly, and the package the same way under any program."""

import re
import subprocess
import sys

import keras_vanilla_cli
import pytest

import keras_vanilla
from keras_vanilla.cli import main, parser
from keras_vanilla.cli.console import refuse_missing_models

COMMANDS = "quickstart train translate evaluate convert export verify describe plot"
START = """
import sys, keras_vanilla_cli
try:
    status = keras_vanilla_cli.main()
except SystemExit as stop:
    status = stop.code
print("keras" in sys.modules, status)
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize(
    ("arguments", "status"), [("--help", 0), ("--version", 0), ("train", 2)]
)
def test_arguments_are_parsed_before_keras_import(arguments, status):
    result = run("-c", START, arguments)
    assert result.stdout.endswith(f"False {status}\n"), result.stderr


@pytest.mark.parametrize(
    "command",
    [
        "translate {} A",
        "export {} a.tflite",
        "plot attention {} A -o a.png",
        "verify en-fr {} --source a",
        "train --from {} --source a --target a --output b",
        "distil {} --source a --output b",
    ],
)
def test_missing_model_is_named_before_keras_import(command, tmp_path):
    model = str(tmp_path / "none.keras")
    result = run("-c", START, *command.format(model).split())
    assert result.stdout.endswith("False 1\n")
    assert result.stderr == f"keras-vanilla: There is no file or folder {model}.\n"


@pytest.mark.parametrize("command", ["export hub:one a.tflite", "translate hub:a/b x"])
def test_hub_model_needs_no_file(command):
    refuse_missing_models(parser().parse_args(command.split()))  # raises nothing


def test_help_and_version(capsys):
    for option in ("--help", "--version"):
        with pytest.raises(SystemExit) as stop:
            main([option])
        assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(re.search(rf"\n    {command}\s", shown) for command in COMMANDS.split())
    assert shown.splitlines()[-1] == keras_vanilla.__version__


def test_options_may_be_between_texts():
    command = "translate --beam-size 2 m.keras --max-length 9 one --copy url two"
    options = parser().parse_args(command.split())
    assert (options.model, options.text) == ("m.keras", ["one", "two"])
    assert (options.beam_size, options.max_length, options.copy) == (2, 9, "url")


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", "m.keras", "--no-such-option"],
        ["evaluate", "m.keras", "unexpected"],
        ["evaluate", "--beam-size", "many"],
        ["plot", "positions", "m.keras", "text", "-o", "a.png", "--layer", "1"],
    ],
)
def test_usage_error_shows_usage_of_command(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    shown = capsys.readouterr().err
    assert stop.value.code == 2
    assert shown.startswith(f"usage: keras-vanilla {arguments[0]} ")


def test_entry_point_after_import(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["keras-vanilla", "describe", "missing.tflite"])
    assert keras_vanilla_cli.main() == 1
    assert "missing.tflite" in capsys.readouterr().err
