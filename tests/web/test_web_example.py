"""The web caller: packed for an app, beside a page, and its example in a browser."""

import functools
import hashlib
import json
import re
import shlex
import shutil
import socket
import subprocess
import tarfile
import time
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer

import pytest
from web_setting import FOLDER, MOST_WORDS, StaticFiles, in_python, node, running

from keras_vanilla import __version__
from keras_vanilla.cli import main
from keras_vanilla.web.runtime import PAGE

PROGRAM = """
import { loadTranslator } from 'keras-vanilla-web';
const translator = await loadTranslator(process.argv[1]);
console.log((await translator.translate('two')).text);
translator.close();"""
# What is added to the example: the Translator API, in the page and in a worker.
API = """
import { install, type Translator } from 'keras-vanilla-web/polyfill';

const runtime = new URL('runtime', document.baseURI).href;
const manifest = new URL('translators.json', document.baseURI).href;

async function translate(text: string): Promise<string> {
  const Own = install('translators.json', { prefer: 'own' });
  const pair = { sourceLanguage: 'en', targetLanguage: 'nl' };
  const translator: Translator = await Own.create(pair);
  return translator.translate(text);
}

function translateInWorker(text: string): Promise<string> {
  const worker = new Worker(new URL('./api_worker.ts', import.meta.url), {
    type: 'module',
  });
  worker.postMessage({ manifest, runtime, text });
  return new Promise((done) => (worker.onmessage = ({ data }) => done(data)));
}

Object.assign(globalThis, { translate, translateInWorker });
"""
API_WORKER = """
import { translatorOver } from 'keras-vanilla-web/polyfill';

onmessage = async ({ data: { manifest, runtime, text } }) => {
  const Own = translatorOver(manifest, { runtime });
  const pair = { sourceLanguage: 'en', targetLanguage: 'nl' };
  const translator = await Own.create(pair);
  postMessage(await translator.translate(text));
};
"""
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]


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
    module = tmp_path_factory.mktemp("vite") / "module"
    assert main(["caller", "web", str(module)]) == 0
    folder = module / "example"
    npm(folder, "install", "--ignore-scripts")
    (folder / "public").mkdir()
    shutil.copy(short, folder / "public" / "translator.tflite")
    add_api(folder, short)
    npm(folder, "run", "build")
    return folder


def add_api(folder, model):
    """Adds a program that uses the Translator API to the example's page."""
    (folder / "src" / "api.ts").write_text(API)
    (folder / "src" / "api_worker.ts").write_text(API_WORKER)
    with (folder / "src" / "main.tsx").open("a") as program:
        program.write("import './api';\n")
    content = model.read_bytes()
    entry = {
        "sourceLanguage": "en",
        "targetLanguage": "nl",
        "file": "translator.tflite",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    (folder / "public" / "translators.json").write_text(json.dumps([entry]))


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


def test_vite_example_translates(setting, example, short, unseen_sentences, tmp_path):
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
        assert {path.name for path in (example / "dist" / "runtime").rglob("*.*")} == {
            f"litert_wasm_{variant}internal.{kind}"
            for variant in ("", "compat_")
            for kind in ("js", "wasm")
        }
        built = f"http://127.0.0.1:{server.server_port}/"
        setting["urls"] = {"built": built, "development": url}
        node("example", setting, tmp_path)


def translated_in_node(folder, model):
    """What the module that is installed in a folder makes of "two"."""
    return in_node(folder, PROGRAM, model)


def in_node(folder, program, *arguments):
    """What a program prints that is run in a folder."""
    node = [shutil.which("node"), "--input-type=module", "--eval"]
    result = subprocess.run(
        [*node, program, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def run_block_of_the_guide(folder, heading, monkeypatch):
    """Runs the commands below a heading of export/web/README.md in a folder."""
    guide = (FOLDER / "README.md").read_text(encoding="utf-8")
    section = guide.split(f"\n## {heading}\n")[1]
    monkeypatch.chdir(folder)
    for line in re.search("```\n(.*?)```", section, re.DOTALL)[1].splitlines():
        program, *arguments = shlex.split(line)
        if program == "keras-vanilla":
            assert main(arguments) == 0
        elif program == "npm":
            paths = [name for a in arguments for name in sorted(folder.glob(a)) or [a]]
            npm(folder, *map(str, paths))
        else:
            subprocess.run([program, *arguments], check=True)


def test_installed_module_translates_in_node(example):
    assert translated_in_node(example, "public/translator.tflite") == "twee"


def test_app_keeps_packed_module(short, tmp_path, monkeypatch):
    (tmp_path / "package.json").write_text('{"name": "app"}')
    run_block_of_the_guide(tmp_path, "In an app, with npm", monkeypatch)
    archive = f"keras-vanilla-web-{__version__}.tgz"
    manifest = json.loads((tmp_path / "package.json").read_text())
    assert manifest["dependencies"] == {"keras-vanilla-web": f"file:{archive}"}
    with tarfile.open(tmp_path / archive) as packed:
        names = {name.removeprefix("package/") for name in packed.getnames()}
    files = json.loads((PAGE / "package.json").read_text())["files"]
    assert names == {*files, "package.json", "README.md"}

    shutil.rmtree(tmp_path / "keras-vanilla-web")
    shutil.rmtree(tmp_path / "node_modules")
    npm(tmp_path, "ci", "--ignore-scripts")  # as another developer does
    assert translated_in_node(tmp_path, str(short)) == "twee"
    exports = "console.log(...Object.keys(await import('keras-vanilla-web/polyfill')))"
    assert in_node(tmp_path, exports) == "install translatorOver"


def test_page_without_npm_has_module_and_runtime(tmp_path, monkeypatch):
    run_block_of_the_guide(tmp_path, "In a page of your own", monkeypatch)
    module = tmp_path / "translator"
    assert (module / "translate.js").is_file()
    assert (module / "runtime" / "core" / "wasm" / "litert_wasm_internal.js").is_file()
