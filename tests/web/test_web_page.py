"""The page in a browser: export/web/test drives it, this prepares what it looks at."""

import dataclasses
import functools
import hashlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import echo_file
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla import export
from keras_vanilla.export.metadata.description import (
    FORMAT,
    Description,
    read_description,
    with_description,
)
from keras_vanilla.export.metadata.flatbuffer import with_metadata
from keras_vanilla.web.runtime import PAGE, runtime_folder
from keras_vanilla.web.server import PageServer

pytestmark = pytest.mark.full

FOLDER = Path(__file__).resolve().parents[2] / "export" / "web"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MOST_WORDS = 8  # of what the translator `short` gives
NEEDS_NODE = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node.js is not installed"
)
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


LIMITS = {
    "max_bytes": echo_file.MAX_BYTES,
    "max_source_tokens": echo_file.MAX_TOKENS,
    "max_output_tokens": echo_file.MAX_TOKENS,
}


def described(content, name, **facts):
    facts = LIMITS | {"end_id": echo_file.END_ID} | facts
    return with_description(content, Description(name=name, parameters=12345, **facts))


def described_by_0_5(content):
    """As version 0.5.0 described a file: without a form and a checksum."""
    facts = {"format": "keras_vanilla translator 1", "version": "0.5.0", "name": "old"}
    text = json.dumps(facts | LIMITS | {"beam_size": 1, "parameters": 12345})
    return with_metadata(content, {"keras_vanilla": text.encode()})


@pytest.fixture(scope="module")
def browser():
    """The path of a Chromium; the tests that need one skip where it is not."""
    path = os.environ.get("KERAS_VANILLA_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if path is None:
        pytest.skip("no Chromium is installed")
    installed("playwright-core")
    return path


def installed(package):
    """The folder of one of npm's packages; without it the test is skipped."""
    folder = FOLDER / "node_modules" / package
    if not folder.is_dir():
        pytest.skip("npm ci --ignore-scripts --prefix export/web was not run")
    return folder


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


@pytest.fixture(scope="module")
def short(trained_translator, tmp_path_factory):
    """The translator with outputs of 8 tokens, each a word, at most."""
    path = tmp_path_factory.mktemp("short") / "short.tflite"
    export.tflite(trained_translator, path, max_bytes=131, max_length=MOST_WORDS)
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


class Bytes(tf.Module):
    """Maps the bytes of a text to others, as a damaged file may."""

    def __init__(self, change):
        super().__init__()
        self._change = change

    @tf.function(
        input_signature=[tf.TensorSpec([131], tf.uint8, name="text")], autograph=False
    )
    def translate(self, text):
        octets = self._change(tf.cast(text, tf.int32))
        score = -1.5 + 0 * tf.cast(octets[0], tf.float32)
        return {"text": tf.cast(octets, tf.uint8), "ids": octets, "score": score}


def changing(change, folder):
    """A file of version 0.5.0 that maps each text's bytes to `change(bytes)`."""
    module = Bytes(change)
    tf.saved_model.save(module, folder, signatures={"translate": module.translate})
    converter = tf.lite.TFLiteConverter.from_saved_model(
        str(folder), signature_keys=["translate"]
    )
    return described_by_0_5(converter.convert())


NO_TEXT = {
    "not-utf-8": lambda octets: tf.where(octets > 0, 255, 0),
    "nul": lambda octets: tf.where(octets == ord("u"), 0, octets),
}


def with_one_other_byte(content):
    """The content with a byte in its middle changed, where the weights are."""
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def refused(folder, runtime):
    """Files that the page refuses: name -> (path, runtime, code, message)."""
    whole = described(echo_file.content(), "refused")
    contents = {
        "cut": (whole[: len(whole) // 2], "damaged", "damaged, or cut off after"),
        "cut-at-its-end": (whole[:-9], "damaged", "damaged, or cut off after"),
        "noise": (whole[:8] + os.urandom(9999), "damaged", "damaged, or cut off after"),
        "one-other-byte": (with_one_other_byte(whole), "damaged", "the checksum at"),
        "not-empty": (
            changing(lambda octets: octets + 65, folder / "not-empty"),
            "damaged",
            "empty text",
        ),
        "no-model": (whole[:4] + b"TFL3" + bytes(99), "not-ours", "not a translator"),
        "foreign": (foreign(), "not-ours", "not a translator"),
        "ids": (
            described(echo_file.content(), "ids", form="ids"),
            "not-ours",
            "form “ids”",
        ),
        "other-format": (
            whole.replace(FORMAT.encode(), b"keras_vanilla translator 9"),
            "other-format",
            "translator 9",
        ),
        "empty": (b"", "not-tflite", "not a .tflite file"),
        "missing": (None, "missing", "There is no model at .*404"),
        "no-runtime": (whole, "runtime", "LiteRT.js did not load from"),
    }
    for name, (content, code, message) in contents.items():
        path = folder / f"{name}.tflite"
        if content is not None:
            path.write_bytes(content)
        yield name, path, folder if code == "runtime" else runtime, code, message


@functools.cache
def undamaged():
    return described(echo_file.content(), "undamaged")


@contextmanager
def served(path, runtime):
    """The address of a server of whatever is at `path`, now or later."""
    begin = path.with_name(f"{path.name}.begin")
    begin.write_bytes(undamaged())  # `serve-web` refuses to begin with others
    server = PageServer(begin, runtime)
    server.files["/translator.tflite"] = path
    with running(server):
        yield server.url


@contextmanager
def running(server):
    with server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield
        server.shutdown()


class StaticFiles(SimpleHTTPRequestHandler):
    """Any host of static files."""

    extensions_map = {".js": "text/javascript", ".wasm": "application/wasm"} | {
        f".{name}": f"text/{name}" for name in ("html", "css")
    }

    def log_message(self, *args):
        pass


@contextmanager
def hosted(folder, model, runtime):
    """The port of a web host of the page, as export/web/README.md describes one."""
    shutil.copytree(PAGE, folder)
    shutil.copytree(runtime, folder / "runtime")
    shutil.copy(model, folder / "translator.tflite")
    (folder / "other.txt").write_text("of another program")
    handler = functools.partial(StaticFiles, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with running(server):
        yield server.server_port


def node(name, setting, folder):
    """Runs a test file of export/web/test."""
    path = folder / "setting.json"
    path.write_text(json.dumps(setting), encoding="utf-8")
    result = subprocess.run(
        [shutil.which("node"), "--test", str(FOLDER / "test" / f"{name}.test.mjs")],
        env=os.environ | {"KERAS_VANILLA_WEB_TEST": str(path)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture
def setting(browser):
    return {"chromium": browser, "screenshots": str(FOLDER / "screenshots")}


@pytest.fixture(scope="module")
def runtime(browser):
    return runtime_folder(FOLDER)


def test_it_translates_as_python_does(
    setting, runtime, echo, translator, short, unseen_sentences, tmp_path
):
    texts = {
        "short": in_python(short, unseen_sentences),
        "translator": in_python(translator, unseen_sentences),
        "echo": in_python(echo, [*ECHOED, *echo_file.LINES[:100]]),
    }
    assert TOO_MANY_TOKENS in dict(texts["echo"]).values()
    files = {"translator": translator, "short": short, "echo": echo}
    with ExitStack() as stack:
        setting["urls"] = {
            name: stack.enter_context(served(path, runtime))
            for name, path in files.items()
        }
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
        setting["noText"] = []
        for name, change in NO_TEXT.items():
            path = tmp_path / f"{name}.tflite"
            path.write_bytes(changing(change, tmp_path / name))
            url = stack.enter_context(served(path, runtime))
            setting["noText"].append({"name": name, "url": url})
        setting["refused"] = {
            name: {
                "url": stack.enter_context(served(path, folder)),
                "code": code,
                "message": message,
            }
            for name, path, folder, code, message in refused(tmp_path, runtime)
        }
        node("refuses", setting, tmp_path)


def test_everyone_can_read_it(setting, runtime, echo, tmp_path):
    with served(echo, runtime) as url:
        setting["urls"] = {"echo": url}
        node("readable", setting, tmp_path)


def test_it_needs_no_network_after_its_first_load(
    setting, runtime, translator, unseen_sentences, tmp_path
):
    paths = [tmp_path / f"{name}.tflite" for name in ("first", "second")]
    for path in paths:
        path.write_bytes(described(echo_file.content(), path.stem))
    with (
        hosted(tmp_path / "host", translator, runtime) as port,
        served(paths[0], runtime) as exchanged,
    ):
        setting["host"] = f"http://translator.example:{port}/"
        setting["arguments"] = [
            "--host-resolver-rules=MAP translator.example 127.0.0.1",
            # Service workers need https, except where the browser is told otherwise.
            f"--unsafely-treat-insecure-origin-as-secure={setting['host'][:-1]}",
        ]
        setting["texts"] = {"translator": in_python(translator, unseen_sentences[:2])}
        setting["exchanged"] = {
            "url": exchanged,
            "file": str(paths[0]),
            "second": str(paths[1]),
        }
        node("offline", setting, tmp_path)


@NEEDS_NODE
def test_its_modules_work_without_a_browser(echo, tmp_path):
    old = tmp_path / "old.tflite"
    old.write_bytes(described_by_0_5(echo_file.content()))
    rng = random.Random(0)
    texts = ["".join(rng.choices("aB .!?。,\n\"”5éÉ_'(¿", k=40)) for _ in range(500)]
    setting = {
        "page": str(PAGE),
        "file": str(echo),
        "old": str(old),
        "description": dataclasses.asdict(read_description(echo)),
        "texts": texts,
    }
    node("modules", setting, tmp_path)


@NEEDS_NODE
def test_requests_wait_end_and_replace_each_other(tmp_path):
    node("requests", {"page": str(PAGE)}, tmp_path)


@NEEDS_NODE
def test_it_translates_in_node_as_python_does(
    echo, translator, short, unseen_sentences, tmp_path
):
    files = {"translator": translator, "short": short, "echo": echo}
    texts = [unseen_sentences, unseen_sentences, ECHOED]
    setting = {
        "page": str(PAGE),
        "runtime": str(installed("@litertjs")),
        "files": {name: str(path) for name, path in files.items()},
        "texts": {
            name: in_python(files[name], sources)
            for name, sources in zip(files, texts, strict=True)
        },
    }
    node("node", setting, tmp_path)


def compile_types(folder, right="", wrong=""):
    """TypeScript's verdict on translate.d.ts beside what the modules export."""
    for name in ("modules", "types"):
        (folder / name).mkdir(parents=True)
    for path in PAGE.glob("*.js"):
        shutil.copy(path, folder / "modules")
    types = (PAGE / "translate.d.ts").read_text(encoding="utf-8")
    (folder / "types" / "translate.d.ts").write_text(
        types.replace(right, wrong), encoding="utf-8"
    )
    shutil.copy(FOLDER / "test" / "types_match.ts", folder)
    (folder / "package.json").write_text('{"type": "module"}')
    options = "--noEmit --strict --allowJs --module nodenext --target esnext"
    tsc = installed("typescript") / "bin" / "tsc"
    return subprocess.run(
        [shutil.which("node"), tsc, *options.split(), "types_match.ts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


@NEEDS_NODE
def test_its_types_are_those_of_its_modules(tmp_path):
    result = compile_types(tmp_path / "right")
    assert result.returncode == 0, result.stdout
    for right, wrong in [
        ("translateSentence(", "translateLine("),
        ("truncated: boolean", "cut: boolean"),
    ]:
        result = compile_types(tmp_path / right[:9], right, wrong)
        assert "types_match.ts" in result.stdout


def update_module():
    """The module of README.md that replaces a model by a newer one."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    blocks = re.findall("```js\n(.*?)```", readme, re.DOTALL)
    (module,) = [block for block in blocks if "function update()" in block]
    return module


def test_a_newer_model_is_verified_and_swapped(setting, runtime, echo, short, tmp_path):
    folder = tmp_path / "host"
    with hosted(folder, short, runtime) as port:
        (folder / "update.js").write_text(update_module(), encoding="utf-8")
        content = echo.read_bytes()
        (folder / "echo.tflite").write_bytes(content)
        (folder / "damaged.tflite").write_bytes(with_one_other_byte(content))
        setting["url"] = f"http://127.0.0.1:{port}/"
        setting["folder"] = str(folder)
        setting["sha256"] = hashlib.sha256(content).hexdigest()
        node("update", setting, tmp_path)


def npm(folder, *arguments):
    """Runs npm; skips where it cannot reach its registry."""
    command = [shutil.which("npm"), *arguments, "--no-audit", "--no-fund"]
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600
    )
    output = result.stdout + result.stderr
    if any(code in output for code in ("ENOTFOUND", "ETIMEDOUT", "ECONNREFUSED")):
        pytest.skip("npm's registry cannot be reached")
    assert result.returncode == 0, output


@pytest.fixture
def example(tmp_path, short):
    """The example of Vite and React, with what npm installs and a translator."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path / "example"
    ignored = shutil.ignore_patterns("node_modules", "dist", "public")
    shutil.copytree(FOLDER / "example", folder, ignore=ignored)
    npm(folder, "pkg", "set", f"dependencies.keras-vanilla-web=file:{PAGE}")
    npm(folder, "install", "--ignore-scripts")
    (folder / "public").mkdir()
    shutil.copy(short, folder / "public" / "translator.tflite")
    npm(folder, "run", "build")
    return folder


@contextmanager
def developed(folder, port):
    """The address of Vite's development server."""
    vite = folder / "node_modules" / "vite" / "bin" / "vite.js"
    options = ["--host", "127.0.0.1", "--strictPort", "--port", str(port)]
    command = [shutil.which("node"), vite, *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            while b"Local:" not in process.stdout.readline():
                assert process.poll() is None
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_the_example_of_vite_and_react_translates(
    setting, example, short, unseen_sentences, tmp_path
):
    pairs = in_python(short, unseen_sentences)
    whole = [pair for pair in pairs if len(pair[1].split()) < MOST_WORDS][:3]
    paragraphs = ["\n\n".join(texts) for texts in zip(*whole, strict=True)]
    setting["texts"] = [*whole, paragraphs]
    setting["short"] = {
        "whole": whole[0][0],
        "cut": next(text for text, words in pairs if len(words.split()) == MOST_WORDS),
    }
    handler = functools.partial(StaticFiles, directory=example / "dist")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    with running(server), developed(example, free_port()) as url:
        built = f"http://127.0.0.1:{server.server_port}/"
        setting["urls"] = {"built": built, "development": url}
        node("example", setting, tmp_path)
