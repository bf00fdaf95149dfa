"""The page in a browser: export/web/test drives it, this prepares what it looks at."""

import dataclasses
import json
import os
import random
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import echo_file
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import export
from keras_vanilla.export.metadata.description import (
    Description,
    read_description,
    with_description,
)
from keras_vanilla.web.runtime import PAGE, runtime_folder
from keras_vanilla.web.server import PageServer

pytestmark = pytest.mark.full

FOLDER = Path(__file__).resolve().parents[2] / "export" / "web"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TOO_MANY_TOKENS = "too-many-tokens"  # where Python's score is NaN
ECHOED = [
    "Ein Hund rennt 37. Grüße, 猫!",
    "",
    "   ",
    "a\0b",
    "Hund\0",
    "\ufeffHund\u200b\u00a0é e\u0301",
    "🙂👩‍👩‍👧",
    "\ud800 allein",
    "é" * 65,
    "x y " * 32,
]


def described(content, name, **facts):
    limits = {
        "max_bytes": echo_file.MAX_BYTES,
        "max_source_tokens": echo_file.MAX_TOKENS,
        "max_output_tokens": echo_file.MAX_TOKENS,
    }
    return with_description(
        content, Description(name=name, parameters=12345, **limits, **facts)
    )


@pytest.fixture(scope="module")
def browser():
    """The path of a Chromium; the tests that need one skip where it is not."""
    path = os.environ.get("KERAS_VANILLA_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if path is None:
        pytest.skip("no Chromium is installed")
    if not (FOLDER / "node_modules" / "playwright-core").is_dir():
        pytest.skip("npm ci --ignore-scripts --prefix export/web was not run")
    return path


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    path = tmp_path_factory.mktemp("echo") / "echo.tflite"
    facts = {"source_language": "de", "target_language": "pt-BR", "data_license": "CC0"}
    path.write_bytes(described(echo_file.content(), "An echo", **facts))
    return path


@pytest.fixture(scope="module")
def translator(trained_translator, tmp_path_factory):
    path = tmp_path_factory.mktemp("translator") / "translator.tflite"
    export.tflite(trained_translator, path, max_bytes=131)
    return path


def in_python(path, texts):
    """Each text with what LiteRT makes of it in Python."""
    run = Interpreter(str(path), num_threads=1).get_signature_runner("translate")
    (size,) = run.get_input_details()["text"]["shape"]
    return [[text, _translated(run, text, size)] for text in texts]


def _translated(run, text, size):
    octets = np.zeros(size, "uint8")
    content = text.encode("utf-8", "surrogatepass")
    content = content.replace(
        "\ud800".encode("utf-8", "surrogatepass"), b"\xef\xbf\xbd"
    )
    octets[: len(content)] = np.frombuffer(content, "uint8")
    said = run(text=octets)
    if np.isnan(said["score"]):
        return TOO_MANY_TOKENS
    return said["text"].tobytes().rstrip(b"\0").decode("utf-8", "replace")


def foreign():
    """A `.tflite` file that has nothing to do with text."""
    double = tf.function(
        lambda x: 2 * x, input_signature=[tf.TensorSpec([3], tf.float32)]
    ).get_concrete_function()
    return tf.lite.TFLiteConverter.from_concrete_functions([double]).convert()


def refused(folder, runtime):
    """Files that the page refuses: name -> (path, runtime, code, message)."""
    whole = described(echo_file.content(), "refused")
    contents = {
        "cut": (whole[: len(whole) // 2], "damaged", "damaged, or cut off after"),
        "cut-at-its-end": (whole[:-9], "damaged", "damaged, or cut off after"),
        "noise": (whole[:8] + os.urandom(9999), "damaged", "damaged, or cut off after"),
        "no-model": (whole[:4] + b"TFL3" + bytes(99), "not-ours", "no translator"),
        "foreign": (foreign(), "not-ours", "no translator"),
        "other-format": (
            whole.replace(b"keras_vanilla translator 1", b"keras_vanilla translator 9"),
            "other-format",
            "translator 9",
        ),
        "empty": (b"", "not-tflite", "no .tflite file"),
        "missing": (None, "missing", "There is no model at .*404"),
        "no-runtime": (whole, "runtime", "LiteRT.js did not load from"),
    }
    for name, (content, code, message) in contents.items():
        path = folder / f"{name}.tflite"
        if content is not None:
            path.write_bytes(content)
        yield name, path, folder if code == "runtime" else runtime, code, message


@contextmanager
def served(path, runtime):
    """The address of a server of whatever is at `path`, now or later."""
    with ExitStack() as stack:
        if looks_right(path):
            server = PageServer(path, runtime)
        else:  # which `serve-web` refuses to begin with
            begin = path.with_name(f"{path.name}.begin")
            begin.write_bytes(b"\0\0\0\0TFL3")
            server = PageServer(begin, runtime)
            server.files["/translator.tflite"] = path
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server.url


def looks_right(path):
    return path.exists() and path.read_bytes()[4:8] == b"TFL3"


def node(name, setting, folder):
    """Runs a test file of export/web/test."""
    path = folder / "setting.json"
    path.write_text(json.dumps(setting), encoding="utf-8")
    result = subprocess.run(
        [shutil.which("node"), "--test", str(FOLDER / "test" / f"{name}.test.mjs")],
        env=os.environ | {"KERAS_VANILLA_WEB_TEST": str(path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture
def setting(browser):
    return {"chromium": browser, "screenshots": str(FOLDER / "screenshots")}


@pytest.fixture(scope="module")
def runtime(browser):
    return runtime_folder(FOLDER)


def test_it_translates_as_python_does(
    setting, runtime, echo, translator, unseen_sentences, tmp_path
):
    texts = {
        "translator": in_python(translator, unseen_sentences),
        "echo": in_python(echo, [*ECHOED, *echo_file.LINES[:100]]),
    }
    assert TOO_MANY_TOKENS in dict(texts["echo"]).values()
    with served(translator, runtime) as first, served(echo, runtime) as second:
        setting["urls"] = {"translator": first, "echo": second}
        setting["texts"] = texts
        setting["limits"] = {
            "bytes": echo_file.MAX_BYTES,
            "tokens": echo_file.MAX_TOKENS,
        }
        setting["facts"] = ["An echo", "German to Brazilian Portuguese", "12,345"]
        setting["facts"] += ["131 bytes", "40 tokens", "not stated", "CC0"]
        node("translates", setting, tmp_path)


def test_it_says_what_is_wrong_with_a_model(setting, runtime, echo, tmp_path):
    with ExitStack() as stack:
        setting["urls"] = {"echo": stack.enter_context(served(echo, runtime))}
        setting["refused"] = {
            name: {
                "url": stack.enter_context(served(path, folder)),
                "code": code,
                "message": message,
            }
            for name, path, folder, code, message in refused(tmp_path, runtime)
        }
        node("refuses", setting, tmp_path)


def test_it_needs_no_network_after_its_first_load(
    setting, runtime, translator, unseen_sentences, tmp_path
):
    paths = [tmp_path / f"{name}.tflite" for name in ("first", "second")]
    for path in paths:
        path.write_bytes(described(echo_file.content(), path.stem))
    with served(translator, runtime) as url, served(paths[0], runtime) as exchanged:
        setting["urls"] = {"translator": url}
        setting["texts"] = {"translator": in_python(translator, unseen_sentences[:2])}
        setting["exchanged"] = {
            "url": exchanged,
            "file": str(paths[0]),
            "second": str(paths[1]),
        }
        node("offline", setting, tmp_path)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_its_modules_work_without_a_browser(echo, tmp_path):
    rng = random.Random(0)
    texts = ["".join(rng.choices("aB .!?。,\n\"”5éÉ_'(¿", k=40)) for _ in range(500)]
    setting = {
        "page": str(PAGE),
        "file": str(echo),
        "description": dataclasses.asdict(read_description(echo)),
        "texts": texts,
    }
    node("modules", setting, tmp_path)
