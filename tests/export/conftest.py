"""Exported files of the trained translator, each written once; and many texts."""

import os

import numpy as np
import pytest
from checks import randomize
from child_process import PROGRAMS, run
from once_per_run import made_once

from keras_vanilla import Transformer, Translator, export

LIMITS = {"max_bytes": 160, "max_source_length": 29, "max_length": 59}


@pytest.fixture(scope="session")
def saved_folder(trained_translator, tmp_path_factory):
    return made_once(
        tmp_path_factory,
        "saved_model",
        lambda path: export.saved_model(trained_translator, path),
    )


@pytest.fixture(scope="session")
def float32_file(trained_translator, tmp_path_factory):
    return made_once(
        tmp_path_factory,
        "float32.tflite",
        lambda path: export.tflite(trained_translator, path, quantize=None, **LIMITS),
    )


@pytest.fixture(scope="session")
def files_on_jax(trained_file, tmp_path_factory):
    """A folder of files that JAX writes in an environment without TensorFlow."""
    if (python := os.environ.get("KERAS_VANILLA_JAX_PYTHON")) is None:
        pytest.skip("KERAS_VANILLA_JAX_PYTHON names no Python without TensorFlow")

    def write(folder):
        folder.mkdir()
        program = PROGRAMS / "export_on_jax.py"
        run(program, trained_file, folder, python=python, backend="jax")

    return made_once(tmp_path_factory, "on_jax", write)


@pytest.fixture(scope="session")
def float32_file_on_jax(files_on_jax):
    return files_on_jax / "float32.tflite"


@pytest.fixture(scope="session")
def int8_file_on_jax(files_on_jax):
    return files_on_jax / "int8.tflite"


@pytest.fixture(scope="session")
def short_file(trained_translator, tmp_path_factory):
    """Translations of at most 8 tokens, in float32."""
    settings = {"max_length": 8, "quantize": None, "check": "structure"}
    return made_once(
        tmp_path_factory,
        "short.tflite",
        lambda path: export.tflite(trained_translator, path, **settings),
    )


@pytest.fixture(scope="session")
def endless_translator(small_translator):
    """Its outputs have neither an end nor pads."""
    model = small_translator.model
    config = {**model.get_config(), "output_bias": True}
    endless = randomize(Transformer.from_config(config))
    bias = np.zeros(model.target_vocabulary_size)
    bias[[model.end_id, model.pad_id]] = -1e3
    endless.decoder.bias.bias.assign(bias)
    return Translator(small_translator.tokenizer, endless)


@pytest.fixture(scope="session")
def all_names():
    """The names of languages and countries, in all languages that babel knows."""
    babel = pytest.importorskip("babel")
    names = set()
    for code in babel.localedata.locale_identifiers():
        locale = babel.Locale.parse(code)
        names.update(map(str, locale.languages.values()))
        names.update(map(str, locale.territories.values()))
    return sorted(names)
