"""Errors where a backend or the packages of an extra are not installed."""

import subprocess
import sys

import keras
import pytest

from keras_vanilla import _checks, export
from keras_vanilla.data import ParallelCorpus, batches
from keras_vanilla.export.checks.runners import SavedModelFolder
from keras_vanilla.export.conversion import check_backend
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


def needs(what, extra):
    return pytest.raises(ImportError, match=rf'{what}.*pip install "\.\[{extra}\]"')


def test_missing_package_names_extra(without, tmp_path):
    tokenizer = Tokenizer.train(lines=TEXT, vocabulary_size=280)
    data = batches(ParallelCorpus(TEXT, TEXT), tokenizer)
    without("tensorflow_text", "huggingface_hub")
    with needs("Tokenizers in TensorFlow graphs need tensorflow-text", "text"):
        tokenizer.source_graph(TEXT)
    with needs("Models of the hub need huggingface-hub", "hub"):
        Translator.from_hub("Helsinki-NLP/opus-mt-de-en")
    without("tensorflow", forget=["data.tf_pipeline"])
    with needs("Training data need tensorflow", "tensorflow"):
        data.dataset()
    with needs("SavedModels need tensorflow", "tensorflow"):
        SavedModelFolder(tmp_path)


def test_exports_name_extra(without, monkeypatch):
    without("tensorflow", forget=["export.to_saved_model", "export.tensorflow_graphs"])
    with needs("Exports need tensorflow", "tensorflow"):
        _ = export.saved_model
    without("litert_converter")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with needs("Exports on JAX need litert-converter", "export"):
        check_backend()


def test_missing_backend_names_extra_and_others():
    error = _checks.backend_missing("jax")
    assert 'backend jax is not installed. Install with: pip install ".[jax]"' in str(
        error
    )
    assert "KERAS_BACKEND to its name: tensorflow, torch." in str(error)


@pytest.mark.full
def test_import_without_backend_names_extra(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    code = "import sys; sys.modules['tensorflow'] = None; import keras_vanilla"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True)
    last = result.stderr.splitlines()[-1]
    assert b"ImportError: Keras's backend tensorflow is not installed." in last
