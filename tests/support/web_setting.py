"""Servers of the page and its files, and Node.js to look at them with."""

import functools
import json
import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import echo_file
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from keras_vanilla.export.metadata.description import Description
from keras_vanilla.export.metadata.flatbuffer import (
    packed,
    unpacked,
    with_description,
)
from keras_vanilla.web.runtime import PAGE
from keras_vanilla.web.server import PageServer

FOLDER = Path(__file__).resolve().parents[2] / "export" / "web"
LOCK = json.loads((PAGE / "package-lock.json").read_text())
VERSION = LOCK["packages"]["node_modules/@litertjs/core"]["version"]
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
    description = Description(name=name, parameters=12345, **facts)
    return with_description(unpacked(content), description)


def described_by_0_5(content):
    """As version 0.5.0 described a file: without a form and a checksum."""
    facts = {"format": "keras_vanilla translator 1", "version": "0.5.0", "name": "old"}
    text = json.dumps(facts | LIMITS | {"beam_size": 1, "parameters": 12345})
    return packed(unpacked(content), {"keras_vanilla": text.encode()})


def installed(package):
    """The folder of one of npm's packages; without it the test is skipped."""
    folder = FOLDER / "node_modules" / package
    if not folder.is_dir():
        pytest.skip("npm ci --ignore-scripts --prefix export/web was not run")
    return folder


def make_runtime(folder, version=VERSION):
    """A folder as npm leaves it, with a tenth of the files."""
    core = folder / "node_modules" / "@litertjs" / "core"
    (core / "wasm").mkdir(parents=True)
    (core / "package.json").write_text(json.dumps({"version": version}))
    (core / "wasm" / "litert.js").write_text("// LiteRT")
    (core / "wasm" / "litert.wasm").write_bytes(b"\0asm")
    return folder


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
    outputs = run(text=octets)
    if np.isnan(outputs["score"]):
        return TOO_MANY_TOKENS
    return outputs["text"].tobytes().rstrip(b"\0").decode("utf-8", "replace")


def with_one_other_byte(content):
    """The content with a byte in its middle changed, where the weights are."""
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@functools.cache
def undamaged():
    return described(echo_file.content(), "undamaged")


@contextmanager
def served(path, runtime, missing=None):
    """The address of a server of whatever is at `path`, now or later."""
    begin = path.with_name(f"{path.name}.begin")
    begin.write_bytes(undamaged())  # `serve-web` refuses to begin with others
    server = PageServer(begin, runtime)
    server.files["/translator.tflite"] = str(path)
    server.files.pop(missing, None)
    with running(server):
        yield server.url


@contextmanager
def running(server):
    with server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
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


def node(name, setting, folder, options=(), timeout=500):
    """Runs a test file of export/web/test, and ends it with its browsers in time."""
    path = folder / "setting.json"
    path.write_text(json.dumps(setting), encoding="utf-8")
    script = FOLDER / "test" / f"{name}.test.mjs"
    process = subprocess.Popen(
        [shutil.which("node"), *options, "--test", str(script)],
        env=os.environ | {"KERAS_VANILLA_WEB_TEST": str(path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0, output
