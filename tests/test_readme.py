"""What the README says is true."""

import base64
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from keras_vanilla import Transformer
from keras_vanilla.cli import parser

CHECKOUT = Path(__file__).resolve().parents[1]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
LAYERS = [example for example in EXAMPLES if "keras_vanilla.layers" in example]


def test_there_are_examples_of_layers():
    assert len(LAYERS) >= 4


@pytest.mark.parametrize("index", range(len(LAYERS)))
def test_each_layer_example_runs_as_it_stands(index, tmp_path):
    subprocess.run(
        [sys.executable, "-c", LAYERS[index]], check=True, cwd=tmp_path, timeout=120
    )
    assert len(list(tmp_path.glob("*.keras"))) == 1


@pytest.mark.parametrize("command", ["quickstart", "test"])
def test_each_of_the_two_commands_is_one_line(command):
    marked = rf"<!-- command: {command} -->\n```\n(.*?)\n```"
    (found,) = re.findall(marked, README, re.DOTALL)
    assert found.startswith("python3 -m venv .venv && ") and "\n" not in found


def test_every_command_and_option_of_the_readme_exists():
    joined = README.replace("\\\n", " ")
    commands = re.findall(r"^keras-vanilla (.+)$", joined, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        parser().parse_args(shlex.split(command))


def test_every_file_it_names_is_there():
    for path in re.findall(r"(?:\]\(|`)((?:tests|notebooks|export)/[\w./-]+)", README):
        assert (CHECKOUT / path).exists()


def test_its_pictures_are_those_of_the_notebooks():
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+\.png)\)", README)
    assert len(pictures) == 3
    drawn = "".join(
        path.read_text(encoding="utf-8") for path in CHECKOUT.glob("notebooks/*.ipynb")
    )
    for path in pictures:
        picture = base64.b64encode((CHECKOUT / path).read_bytes()).decode()
        assert picture in drawn.replace("\\n", "")


def test_parameter_counts_are_those_of_the_presets():
    base = Transformer.from_preset("base", source_vocabulary_size=37_000)
    assert f"{base.count_params():,}" in README
