"""Files, a browser and LiteRT.js for the tests of the page and its module."""

import os
import shutil

import echo_file
import pytest
from web_setting import FOLDER, MOST_WORDS, described, installed

from keras_vanilla import export
from keras_vanilla.web.runtime import runtime_folder

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser():
    """The path of a Chromium; the tests that need one skip where it is not."""
    path = os.environ.get("KERAS_VANILLA_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if path is None:
        pytest.skip("no Chromium is installed")
    installed("playwright-core")
    return path


@pytest.fixture(scope="session")
def echo(tmp_path_factory):
    path = tmp_path_factory.mktemp("echo") / "echo.tflite"
    facts = {"source_language": "de", "target_language": "pt-BR", "data_license": "CC0"}
    path.write_bytes(described(echo_file.content(), "An echo", **facts))
    return path


@pytest.fixture(scope="session")
def translator(trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("translator") / "translator.tflite"
    export.tflite(trained_translator, path, max_bytes=131)
    return path


@pytest.fixture(scope="session")
def short(trained_translator, tmp_path_factory):
    """The translator with outputs of 8 tokens, each a word, at most."""
    path = tmp_path_factory.mktemp("short") / "short.tflite"
    export.tflite(trained_translator, path, max_bytes=131, max_length=MOST_WORDS)
    return path


@pytest.fixture(scope="session")
def linked(trained_translator, tmp_path_factory):
    """A file that says which words belong together, and how sure it is."""
    path = tmp_path_factory.mktemp("linked") / "linked.tflite"
    outputs = ["alignment", "confidence"]
    limits = {"max_bytes": 131, "max_source_length": 40, "max_length": 59}
    options = {"outputs": outputs, "check": "structure", "quantize": None}
    export.tflite(trained_translator, path, **limits, **options)
    return path


@pytest.fixture
def setting(browser):
    return {"chromium": browser, "screenshots": str(FOLDER / "screenshots")}


@pytest.fixture(scope="session")
def runtime(browser):
    return runtime_folder(FOLDER)


@pytest.fixture(scope="session")
def litertjs():
    """The folder where npm has installed LiteRT.js."""
    installed("@litertjs")
    return str(FOLDER)
