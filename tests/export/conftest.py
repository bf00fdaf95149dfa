"""Exported files of the trained translator, each written once."""

import pytest

from keras_vanilla import export


@pytest.fixture(scope="session")
def saved_folder(trained_translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "saved_model"
    export.saved_model(trained_translator, folder)
    return folder


@pytest.fixture(scope="session")
def float32_file(trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "float32.tflite"
    settings = {"form": "ids", "max_source_length": 29, "max_length": 59}
    export.tflite(trained_translator, path, quantize=None, **settings)
    return path


@pytest.fixture(scope="session")
def int8_file(trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "int8.tflite"
    settings = {"form": "ids", "max_source_length": 29, "max_length": 59}
    export.tflite(trained_translator, path, **settings)
    return path
