"""What a person reads who has not installed a backend, or what an extra brings."""

import subprocess
import sys

import pytest

from keras_vanilla import _checks, export
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.export.checks.runners import SavedModelFolder
from keras_vanilla.tokenizer import Tokenizer
from keras_vanilla.translation import Translator

TEXT = ["one two", "two three", "three one"]


@pytest.fixture
def without(monkeypatch):
    """A function: packages that cannot be imported, and modules that forget them."""

    def hide(*packages, forget=()):
        for name in forget:
            monkeypatch.delitem(sys.modules, f"keras_vanilla.{name}", raising=False)
        for name in packages:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(lines=TEXT, vocabulary_size=280)


def needs(what, extra):
    return pytest.raises(ImportError, match=rf'{what}.*pip install "\.\[{extra}\]"')


def test_training_data_name_extra(without, tokenizer):
    data = batches(ParallelCorpus(TEXT, TEXT), tokenizer)
    without("tensorflow", forget=["data.tf_pipeline"])
    with needs("Training data need tensorflow", "tensorflow"):
        data.dataset()


@pytest.mark.parametrize("name", ["to_tflite", "to_saved_model"])
def test_exports_name_extra(name, without):
    without("tensorflow", forget=[f"export.{name}", "export.conversion"])
    with needs("Exports need tensorflow", "tensorflow"):
        getattr(export, name.removeprefix("to_"))


def test_other_failing_import_is_named(monkeypatch):
    def import_numpy(name):
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr(export, "_imported", import_numpy)
    with pytest.raises(ModuleNotFoundError, match="numpy"):
        _ = export.saved_model


def test_tokenizers_in_graphs_name_extra(without, tokenizer):
    without("tensorflow_text")
    with needs("Tokenizers in TensorFlow graphs need tensorflow-text", "text"):
        tokenizer.source_graph(TEXT)


def test_saved_models_name_extra(without, tmp_path):
    without("tensorflow")
    with needs("SavedModels need tensorflow", "tensorflow"):
        SavedModelFolder(tmp_path)


def test_hub_models_name_extra(without):
    without("huggingface_hub")
    with needs("Models of the hub need huggingface-hub", "hub"):
        Translator.from_hub("Helsinki-NLP/opus-mt-de-en")


def test_missing_backend_names_extra_and_others():
    error = _checks.backend_missing("jax")
    assert 'backend jax is not installed. Install with: pip install ".[jax]"' in str(
        error
    )
    assert "KERAS_BACKEND to its name: tensorflow, torch." in str(error)


IMPORTED = """
import sys
sys.modules[{name!r}] = None
import keras_vanilla
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tensorflow", "ImportError: Keras's backend tensorflow is not installed."),
        ("keras", "ModuleNotFoundError: import of keras halted"),
    ],
)
def test_import_without_backend_names_extra(name, words, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    result = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(name=name)],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert words in result.stderr.splitlines()[-1]
