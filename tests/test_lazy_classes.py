"""Classes that Keras finds by name before their modules are imported."""

import ast
import subprocess
import sys
from pathlib import Path

import keras
import pytest
from architecture_page import ROOT

import keras_vanilla
from keras_vanilla import Translator
from keras_vanilla._lazy_classes import HOMES, REMOVED, LazyClass

SAVED = Path(__file__).parent / "saved_files" / "translator-0.1.0.keras"


def registered_classes():
    """The classes in the package that a decorator registers, and their modules."""
    for path in ROOT.rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            decorators = getattr(node, "decorator_list", ())
            if any("register_keras_serializable" in ast.unparse(d) for d in decorators):
                yield node.name, module


def test_registered_classes_have_homes():
    later = {n: m for n, m in registered_classes() if not m.startswith("layers.")}
    tokenizers = {n: m for n, m in HOMES.items() if m == "translation.saved_classes"}
    assert later | tokenizers == HOMES


@pytest.mark.parametrize("name", HOMES)
def test_class_replaces_placeholder(name):
    cls = LazyClass(name).imported()
    assert isinstance(cls, type) and cls.__name__ == name
    assert keras.saving.get_registered_object(f"keras_vanilla>{name}") is cls


@pytest.mark.parametrize("name", REMOVED)
def test_removed_class_is_loaded_by_another(name):
    assert hasattr(LazyClass(name).imported(), "from_config")
    assert isinstance(
        keras.saving.get_registered_object(f"keras_vanilla>{name}"), LazyClass
    )


def test_placeholder_makes_object_of_class():
    loss = LazyClass("SmoothedCrossentropy")(label_smoothing=0.25)
    again = LazyClass("SmoothedCrossentropy").from_config(loss.get_config())
    assert type(again) is keras_vanilla.training.SmoothedCrossentropy
    assert again.label_smoothing == loss.label_smoothing == 0.25


FRESH = """
import sys
{first}
ours = [m for m in sys.modules if m.startswith("keras_vanilla.")]
print(sorted({{m.split(".")[1] for m in ours}}), "sentencepiece" in sys.modules)
"""


def printed(code, *arguments):
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip().splitlines()[-1]


@pytest.mark.full
@pytest.mark.parametrize(
    "first", ["import keras_vanilla", "from keras_vanilla.layers import EncoderLayer"]
)
def test_layers_are_imported_alone(first):
    parts = ["_checks", "_lazy_classes", "_lazy_names", "_operators", "_readable"]
    parts += ["_types", "_version", "layers"]
    assert printed(FRESH.format(first=first)) == f"{parts} False"


LOADED = "import sys, keras, keras_vanilla; {}; print(type(loaded).__name__)"


@pytest.mark.full
def test_saved_files_load_after_package_alone(tmp_path):
    code = LOADED.format("loaded = keras.saving.load_model(sys.argv[1])")
    assert printed(code, str(SAVED)) == Translator.__name__
    path = tmp_path / "model.keras"
    inputs = keras.Input((None,), dtype="int32")
    x = keras_vanilla.layers.TokenEmbedding(7, 4)(inputs)
    model = keras.Model(inputs, keras.layers.Dense(7)(x))
    training = keras_vanilla.training
    optimizer = training.transformer_optimizer(4, 10)
    metrics = [training.TokenAccuracy()]
    model.compile(optimizer, training.SmoothedCrossentropy(), metrics=metrics)
    model.save(path)
    code = LOADED.format("loaded = keras.saving.load_model(sys.argv[1]).loss")
    assert printed(code, str(path)) == "SmoothedCrossentropy"
