"""The example of Vite and React: what npm brings, built, and in a browser."""

import functools
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer

import pytest
from web_setting import FOLDER, MOST_WORDS, StaticFiles, in_python, node, running

from keras_vanilla.web.runtime import PAGE

pytestmark = pytest.mark.full


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


@pytest.fixture(scope="module")
def example(tmp_path_factory, short):
    """The example of Vite and React, with what npm installs and a translator."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("vite") / "example"
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
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        try:
            wait_for(process, port)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()


def wait_for(server, port, seconds=120):
    """Waits until the server accepts connections: what it prints is for people."""
    deadline = time.monotonic() + seconds
    while server.poll() is None and time.monotonic() < deadline:
        with suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port)).close()
        time.sleep(0.1)
    pytest.fail(f"no server at port {port}; its process: {server.poll()}")


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


def test_the_installed_module_translates_in_node(example):
    program = """
        import { loadTranslator } from 'keras-vanilla-web';
        const translator = await loadTranslator('public/translator.tflite');
        console.log((await translator.translate('two')).text);
        translator.close();"""
    result = subprocess.run(
        [shutil.which("node"), "--input-type=module", "--eval", program],
        cwd=example,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.stdout == "twee\n", result.stderr
