"""README and guides are true."""

import ast
import base64
import importlib
import inspect
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from keras_vanilla import Transformer, Translator
from keras_vanilla.cli import parser

CHECKOUT = Path(__file__).resolve().parents[1]
BENCHMARKS = CHECKOUT / "tests" / "benchmarks"
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(
    [
        *CHECKOUT.glob("*.md"),
        *CHECKOUT.glob("keras_vanilla/**/README.md"),
        *CHECKOUT.glob("export/*.md"),
        *CHECKOUT.glob("export/*/README.md"),
        *CHECKOUT.glob("notebooks/**/*.md"),
        *CHECKOUT.glob("tests/benchmarks/*.md"),
    ]
)
LAYERS_GUIDE = CHECKOUT / "keras_vanilla/layers/README.md"
LAYERS = [
    example
    for page in (README, LAYERS_GUIDE.read_text(encoding="utf-8"))
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    if re.search(r"\.save\(\"\w+\.keras\"\)", example)
]


def name_of(page):
    return page.relative_to(CHECKOUT).as_posix()


def matches(pattern, flags=re.MULTILINE | re.DOTALL):
    """(page, match) of each match on all pages."""
    return [
        pytest.param(page, text, id=f"{name_of(page)}-{number}")
        for page in PAGES
        for number, text in enumerate(
            re.findall(pattern, page.read_text(encoding="utf-8"), flags)
        )
    ]


def test_first_screen():
    first, rest = README.split("\n## ", 1)
    assert len(README.splitlines()) <= 200 and len(first.splitlines()) <= 30
    assert re.search(r"!\[.+\]\(notebooks/pictures/\w+\.png\)", first)
    for expected in (" → ", " MB |", " ms |", " BLEU |"):
        assert expected in first
    commands = re.findall(r"^keras-vanilla (\w+)", first, re.MULTILINE)
    assert commands == ["translate", "export", "train"]
    assert rest.index("## Results") < rest.index("| OpenNMT-tf |")


def test_first_translation():
    source, translation = re.search(r"\*(.+?)\* → \*(.+?)\*", README).groups()
    assert f'"{source}"' in README.split("```")[1]
    assert Translator.from_preset("en-fr").translate([source]) == [translation]


def test_first_figures_are_those_of_model_card():
    row = r"\| ([\d.]+ MB) \| ([\d.]+ ms) \| ([\d.]+ BLEU) \| (\d+ of 180) \|"
    figures = re.search(row, README).groups()
    card = CHECKOUT / "keras_vanilla/pretrained/en-fr/README.md"
    card = card.read_text(encoding="utf-8")
    assert all(figure in card for figure in figures)
    assert re.search(r"\(chrF [\d.]+\)", README)[0][1:-1] in card
    log = (BENCHMARKS / "results" / "tatoeba-en-fr.txt").read_text(encoding="utf-8")
    of_file = log.split("evaluate translator.tflite", 1)[1]
    bleu, chrf = re.search(r"BLEU (\S+) +chrF (\S+)", of_file).groups()
    assert figures[2] == f"{float(bleu):.1f} BLEU"
    assert f"(chrF {float(chrf):.1f})" in README


def test_training_steps_are_logged():
    log = (BENCHMARKS / "results" / "training-step.txt").read_text(encoding="utf-8")
    names = {"Keras": "keras", "KerasHub": "keras_hub", "PyTorch": "torch"}
    for row, name in ({"keras_vanilla": "ours"} | names).items():
        logged = []
        for shape in ("64 x 32", "4 x 512"):
            for precision in ("float32", "bfloat16"):
                table = log.split(f"\nsmall, {shape}, {precision}\n", 1)[1]
                milliseconds = re.search(rf"^{name} +(\d+)", table, re.MULTILINE)[1]
                logged.append(f"{int(milliseconds):,}")
        shown = re.search(rf"^\| {row} \| (.+ / .+) \|$", README, re.MULTILINE)[1]
        assert re.findall(r"[\d,]+", shown) == logged


ALL_PADDING = """
import numpy as np
model = keras.saving.load_model("classifier.keras")
rows = np.array([[5, 3, 0], [0, 0, 0]])
assert np.isfinite(model.predict(rows, verbose=0)).all()
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(rows, np.array([1, 2]), verbose=0)
assert all(np.isfinite(weight).all() for weight in model.get_weights())
"""


@pytest.mark.full
@pytest.mark.parametrize("index", range(len(LAYERS)))
def test_layer_examples_run_and_learn_from_padding(index, tmp_path):
    example = LAYERS[index]
    if "classifier.keras" in example:
        example += ALL_PADDING
    subprocess.run(
        [sys.executable, "-c", example], check=True, cwd=tmp_path, timeout=600
    )
    assert len(list(tmp_path.glob("*.keras"))) == 1


@pytest.mark.parametrize(
    ("page", "command"), matches(r"^keras-vanilla ((?:\\\n|[^\n])+)$", re.MULTILINE)
)
def test_commands_and_options_exist(page, command):
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    ends = [i for i, word in enumerate(words) if word in (">", "|")]
    parser().parse_args(words[: min(ends, default=len(words))])


@pytest.mark.parametrize(("page", "example"), matches(r"^```python\n(.*?)^```"))
def test_python_names_and_arguments_exist(page, example):
    """Imports resolve, and calls of what they import take the arguments given."""
    if "from translate import" in example:
        return  # a caller that is copied from export/python; its own tests run it
    for package in ("jax", "ray", "tensorflow_datasets"):
        if re.search(rf"^(import|from) {package}\b", example, re.MULTILINE):
            pytest.importorskip(package, reason=f"{package} is not installed")
    known = {}
    for node in ast.walk(tree := ast.parse(example)):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            known |= {a.asname or a.name: getattr(module, a.name) for a in node.names}
        elif isinstance(node, ast.Import):
            for each in node.names:
                module = importlib.import_module(each.name)
                known[each.asname or each.name.split(".")[0]] = module
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (called := resolved(node.func, known)):
            keywords = {word.arg: None for word in node.keywords if word.arg}
            inspect.signature(called).bind(*node.args, **keywords)


def resolved(node, known):
    """The object that a dotted name of an example stands for, or None."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolved(node.value, known)
        return None if owner is None else getattr(owner, node.attr)
    return None


@pytest.mark.parametrize(("page", "link"), matches(r"\]\(([^)#\s]+)[^)\s]*\)"))
def test_links_lead_to_files(page, link):
    if not link.startswith("https://"):
        assert (page.parent / link).exists()


@pytest.mark.parametrize(("page", "reference"), matches(r"\]\[([\w-]+)\]"))
def test_references_have_addresses(page, reference):
    assert f"\n[{reference}]: https://" in page.read_text(encoding="utf-8")


def test_named_files_exist():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"`((?:tests|notebooks|results)/[\w./-]+)`", text):
            base = page.parent if path.startswith("results") else CHECKOUT
            assert (base / path).exists(), (page, path)


def test_named_extras_exist():
    extras = (CHECKOUT / "setup.cfg").read_text(encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for names in re.findall(r'pip install (?:-q )?(?:-e )?"\.\[([\w,]+)\]"', text):
            for name in names.split(","):
                assert f"\n{name} =\n" in extras, (page, name)
        assert "keras-vanilla[" not in text  # it is not on PyPI


def test_pictures_are_those_of_notebooks():
    drawn = set()
    for path in CHECKOUT.glob("notebooks/*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", ()):
                data = output.get("data", {})
                drawn.add("".join(data.get("image/svg+xml", ())).encode())
                drawn.add(base64.b64decode("".join(data.get("image/png", ()))))
    pictures = list(CHECKOUT.glob("notebooks/pictures/*.*"))
    assert pictures
    for path in pictures:
        assert path.read_bytes() in drawn
        assert any(path.name in page.read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.full
def test_parameter_counts():
    base = Transformer.from_preset("base", source_vocabulary_size=37_000)
    assert f"{base.count_params():,}" in README


def test_changelog_has_this_version():
    from keras_vanilla import __version__

    changelog = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, second = re.findall(r"^## (.+)$", changelog, re.MULTILINE)[:2]
    released = second if first == "Not released yet" else first
    assert released.split()[0] == __version__  # then its date
