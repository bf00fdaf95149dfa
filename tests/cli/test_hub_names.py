"""Commands take models of the hub by name, and ask for them when they run."""

import importlib.util
import shlex

import pytest

from keras_vanilla.cli import main, parser
from keras_vanilla.interop import hub

NAME = "hub:owner/model@v1"
COMMANDS = [
    f"translate {NAME} hello",
    f"translate {NAME} --input a --output-dir out",
    f"evaluate {NAME} --source a --reference b",
    f"convert {NAME} out --format ctranslate2",
    f"export {NAME} out.tflite",
    f"verify {NAME} out.tflite --source a",
    f"plot attention {NAME} hello --output out.png",
    f"train --from {NAME} --source a --target b --output out",
    f"distil {NAME} --source a --output out",
]


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The models that the hub, which has none, is asked for."""
    models = []

    def fetch(model):
        models.append(str(model))
        raise FileNotFoundError(f"The hub has no {model}.")

    monkeypatch.setattr(hub, "fetch", fetch)
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "out.tflite"):
        (tmp_path / name).write_text("one\ntwo\nthree\n")
    return models


@pytest.mark.parametrize("command", COMMANDS)
def test_command_asks_the_hub_when_it_runs(command, asked, capfd):
    if command.startswith("plot") and not importlib.util.find_spec("matplotlib"):
        pytest.skip("matplotlib is not installed")
    if command.startswith("export"):
        command = command.replace("out.tflite", "new.tflite")
    parser().parse_args(shlex.split(command))
    assert asked == []
    assert main(shlex.split(command)) == 1
    assert asked == [NAME]
    error = capfd.readouterr().err
    assert error.splitlines()[-1] == f"keras-vanilla: The hub has no {NAME}."
