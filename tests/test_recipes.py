"""Each recipe of notebooks/recipes.md runs and prints what it should."""

import re
import subprocess
import sys
from pathlib import Path

import keras
import pytest
from child_process import environment

PAGE = Path(__file__).parents[1] / "notebooks" / "recipes.md"
RECIPES = dict(
    re.findall(r"^## (.+?)\n.*?```python\n(.+?)```", PAGE.read_text(), re.M | re.S)
)


def falls(text):
    """Whether the last loss is well below the first."""
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", text)]
    return numbers[-1] < 0.9 * numbers[0]


def reaches(least):
    return lambda text: float(re.findall(r"[\d.]+", text)[0]) >= least


EXPECTED = {
    "Sort numbers": lambda text: text == "[ 4  4  7  9 11 23  3]",
    "Classify sequences": reaches(0.95),
    "A language model": lambda text: text == "the cat sat on the mat and the d",
    "Your own model on a phone": lambda text: text == "True",
    "Say what a picture shows": lambda text: (
        text == "['<start>', 'bottom', 'left', '<end>']"
    ),
    "A class as condition": reaches(0.95),
    "Several languages in one model": lambda text: (
        text == "['livre triste', 'trauriges Buch']"
    ),
    "Characters instead of pieces": reaches(36),
    "R-Drop": falls,
    "A training loop of your own": falls,
    "The same with JAX": falls,
    "Other layers in a Transformer": lambda text: text == "(1, 2, 20) GatedFeedForward",
}


def test_recipes_are_checked_listed_and_short():
    assert list(RECIPES) == list(EXPECTED)
    for name, program in RECIPES.items():
        assert f"| [{name}](#{name.lower().replace(' ', '-')}) |" in PAGE.read_text()
        lines = [line for line in program.splitlines() if line.strip()]
        assert len(lines) <= 30, name
        assert max(map(len, lines)) <= 98


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in RECIPES if "JAX" not in name])
@pytest.mark.filterwarnings("ignore")
def test_recipe_prints_what_it_says(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(0)
    exec(RECIPES[name], {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert EXPECTED[name](printed.strip().splitlines()[-1]), printed
    assert "False" not in printed


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_traps_of_export_are_those_of_keras(tmp_path):
    """What the recipe for phones says of models without layers of ours."""

    def model(dtype):
        x = keras.Input((None, 8))
        return keras.Model(x, keras.layers.Dense(5, dtype=dtype)(x))

    path = tmp_path / "mixed.tflite"
    model("mixed_bfloat16").export(str(path), format="litert", verbose=False)
    assert b"FlexMatMul" in path.read_bytes()
    quantized = model("float32")
    quantized.quantize("int8")
    with pytest.raises(Exception, match="fully_connected"):
        quantized.export(str(path), format="litert", verbose=False)


@pytest.mark.full
def test_recipe_of_jax_runs_in_process(tmp_path):
    pytest.importorskip("jax", reason="JAX is not installed")
    (name,) = (name for name in RECIPES if "JAX" in name)
    seed = "import keras\nkeras.utils.set_random_seed(0)\n"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", seed + RECIPES[name]],
        cwd=tmp_path,
        env=environment("jax"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert EXPECTED[name](done.stdout.strip().splitlines()[-1]), done.stdout
