"""The page's server: what it serves and refuses, how it starts and ends."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys

import described_file
import pytest
from web_setting import LOCK, VERSION, make_runtime, running

from keras_vanilla.cli import main
from keras_vanilla.web.runtime import PAGE, runtime_folder
from keras_vanilla.web.server import PageServer

NPM = """#!{python}
import os, pathlib, sys
assert sys.argv[1] == "ci" and "--ignore-scripts" in sys.argv, sys.argv
assert sorted(os.listdir()) == ["package-lock.json", "package.json"], os.listdir()
core = pathlib.Path("node_modules/@litertjs/core")
core.mkdir(parents=True)
(core / "package.json").write_text('{{"version": "{version}"}}')
{more}
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(described_file.content())
    return path


@pytest.fixture
def installed(tmp_path):
    return make_runtime(tmp_path / "installed")


@pytest.fixture
def server(model, installed):
    with running(PageServer(model, runtime_folder(installed))) as server:
        yield server


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache, with nothing in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "keras_vanilla"


def fake_npm(folder, monkeypatch, more=""):
    folder.mkdir()
    npm = folder / "npm"
    npm.write_text(NPM.format(python=sys.executable, version=VERSION, more=more))
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def ask(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


@pytest.mark.parametrize(
    "path, type_",
    [
        ("/", "text/html; charset=utf-8"),
        ("/index.html?a=b", "text/html; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/translate.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/manifest.webmanifest", "application/manifest+json"),
        ("/runtime/core/wasm/litert.js", "text/javascript; charset=utf-8"),
        ("/runtime/core/wasm/litert.wasm", "application/wasm"),
        ("/translator.tflite", "application/octet-stream"),
    ],
)
def test_files_have_types_and_lengths(server, path, type_):
    response, content = ask(server, path)
    assert response.status == 200
    assert response.headers["Content-Type"] == type_
    assert int(response.headers["Content-Length"]) == len(content) > 0
    head, nothing = ask(server, path, "HEAD")
    assert head.headers["Content-Length"] == str(len(content)) and nothing == b""


def test_links_that_leave_their_folder_are_not_served(tmp_path):
    site, secret = tmp_path / "site", tmp_path / "secret.js"
    (site / "inside").mkdir(parents=True)
    secret.write_text("secret")
    (site / "translator.tflite").write_bytes(described_file.content())
    (site / "page.js").write_text("page")
    (site / "inside" / "up.js").symlink_to("../page.js")
    (site / "out.js").symlink_to(secret)
    (site / "chain.js").symlink_to("out.js")
    (site / "folder").symlink_to(tmp_path)
    with running(PageServer(site)) as server:
        for path in ("/page.js", "/inside/up.js"):
            assert ask(server, path)[1] == b"page"
        for path in ("/out.js", "/chain.js", "/folder/secret.js"):
            assert ask(server, path)[0].status == 404
    (site / "translator.tflite").unlink()
    (site / "translator.tflite").symlink_to(secret)
    with pytest.raises(ValueError, match="without translator.tflite"):
        PageServer(site)


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/%2e%2e/server.py",
        "/runtime/../../../model.bin",
        "/runtime/core/package.json",
        "/runtime/",
        "//etc/passwd",
        "/..%5cserver.py",
        "/model.bin",
        "nothing",
    ],
)
def test_other_paths_are_not_found(server, path):
    assert ask(server, path)[0].status == 404


@pytest.mark.parametrize(
    "status, lines",
    [
        (404, ["GET /nothing HTTP/1.1", "Host: localhost"]),
        (404, ["GET http://[ HTTP/1.1", "Host: localhost"]),
        (501, ["POST / HTTP/1.1", "Host: localhost"]),
        (505, ["GET / HTTP/9.9", "Host: localhost"]),
        (404, ["GET /%00 HTTP/1.1", "Host: localhost"]),
        (414, [f"GET /{'x' * 70_000} HTTP/1.1", "Host: localhost"]),
        (200, ["GET / HTTP/1.1", "Host: LocalHost:1234"]),  # as behind `ssh -L`
        (200, ["GET /translator.tflite HTTP/1.1", "Host: 127.0.0.1:80"]),
        (200, ["GET / HTTP/1.1", "Host: [::1]:8000"]),
        (421, ["GET / HTTP/1.1"]),
        (421, ["GET / HTTP/1.1", "Host: "]),
        (421, ["GET /translator.tflite HTTP/1.1", "Host: attacker.example"]),
        (421, ["GET /nothing HTTP/1.1", "Host: localhost.attacker.example"]),
        (421, ["GET / HTTP/1.1", "Host: 127.0.0.1.attacker.example:80"]),
        (421, ["GET / HTTP/1.1", "Host: localhost:80@attacker.example"]),
        (421, ["GET / HTTP/1.1", "Host: localhost", "Host: attacker.example"]),
    ],
)
def test_requests_to_this_machine_get_security_headers(server, status, lines):
    assert server.server_address[0] == "127.0.0.1"
    answer = raw_answer(server, "\r\n".join([*lines, "", ""]))
    head = answer.split(b"\r\n\r\n")[0].decode()
    assert head.startswith(f"HTTP/1.1 {status} ")
    for name in ("X-Content-Type-Options", "Content-Security-Policy"):
        assert head.count(f"\n{name}: ") == 1
    assert "default-src 'self'" in head and "frame-ancestors 'none'" in head
    assert re.search(r"\nServer: keras-vanilla *\r", head)
    assert "Python" not in answer.decode("latin-1")


def raw_answer(server, request):
    """All that a server sends to a request, which may be anything."""
    address = ("127.0.0.1", server.server_port)
    with socket.create_connection(address, timeout=120) as connection:
        connection.sendall(request.encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as answer:
            return answer.read()


def test_model_exported_again_is_sent_again(server, model):
    facts = model.stat()
    response, content = ask(server, "/translator.tflite")
    assert content == described_file.content()
    assert response.headers["Cache-Control"] == "no-store"
    known = {"If-Modified-Since": response.headers["Last-Modified"]}
    model.write_bytes(content[::-1])
    os.utime(model, ns=(facts.st_atime_ns, facts.st_mtime_ns + 2 * 10**9))
    assert ask(server, "/translator.tflite", **known)[1] == content[::-1]
    model.unlink()
    assert ask(server, "/translator.tflite")[0].status == 404


def test_service_worker_keeps_every_file():
    kept = set()
    lists = {"service-worker": ["PAGE"], "offline": ["TRANSLATE", "API"]}
    for name, words in lists.items():
        script = (PAGE / f"{name}.js").read_text()
        for word in words:
            listed = re.search(rf"const {word} = \[(.*?)\]", script, re.DOTALL)[1]
            kept |= set(re.findall(r"'(.+?)'", listed))
    others = {"package.json", "package-lock.json", "service-worker.js", "offline.js"}
    others |= {"node.js", "node_worker.js", "translate.d.ts"}
    others |= {"polyfill.d.ts"}
    files = {path.name for path in PAGE.iterdir() if path.is_file()} - others
    assert kept == files - {"index.html"} | {"./"}


def test_lock_file_pins_by_hash():
    assert {name for name in LOCK["packages"] if name} == {
        "node_modules/@litertjs/core",
        "node_modules/@litertjs/wasm-utils",
    }
    for name, package in LOCK["packages"].items():
        home = package.get("resolved", "https://registry.npmjs.org/")
        assert home.startswith("https://registry.npmjs.org/")
        assert not name or package["integrity"].startswith("sha512-")


def test_npm_installs_once(cache, tmp_path, monkeypatch):
    fake_npm(tmp_path / "bin", monkeypatch)
    said = []
    folder = runtime_folder(say=said.append)
    assert folder == cache / f"litertjs-{VERSION}" / "node_modules" / "@litertjs"
    assert (folder / "core" / "package.json").is_file()
    assert len(said) == 1 and VERSION in said[0]
    monkeypatch.setenv("PATH", "")
    assert runtime_folder(say=said.append) == folder
    assert len(said) == 1
    assert [path.name for path in cache.iterdir()] == [f"litertjs-{VERSION}"]


def test_simultaneous_installations_keep_one(cache, tmp_path, monkeypatch):
    root = cache / f"litertjs-{VERSION}"
    also = f"import shutil; shutil.copytree('.', {str(root)!r})"
    fake_npm(tmp_path / "bin", monkeypatch, also)
    assert runtime_folder(say=print).is_dir()
    assert list(cache.iterdir()) == [root]


def test_failed_installation_is_removed(cache, tmp_path, monkeypatch):
    errors = "npm error code ENOTFOUND\\nnpm error network is down\\n"
    errors += "npm error A complete log of this run can be found in: /x"
    fake_npm(tmp_path / "bin", monkeypatch, f"sys.exit('{errors}')")
    message = "could not install LiteRT.js: .*ENOTFOUND .*network is down .*--runtime"
    with pytest.raises(RuntimeError, match=message):
        runtime_folder(say=print)
    assert list(cache.iterdir()) == []


def fails(capfd, *arguments):
    assert main(["serve-web", *map(str, arguments)]) == 1
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("keras-vanilla: ") and err.count("\n") == 1
    return err


def test_wrong_arguments_are_named(model, installed, server, tmp_path, capfd):
    missing, text = tmp_path / "missing.tflite", tmp_path / "text.tflite"
    text.write_text("a text that is no model")
    runtime = ("--runtime", installed)
    taken = server.server_port
    assert f"There is no file or folder {missing}." in fails(capfd, missing, *runtime)
    said = fails(capfd, tmp_path)
    assert f"Received: {tmp_path}, without translator.tflite" in said
    assert f"{text} is not a .tflite file" in fails(capfd, text, *runtime)
    said = fails(capfd, model, "--port", taken, *runtime)
    assert f"Port {taken} cannot be used: " in said and "Address already in use" in said
    assert "Port 70000 cannot" in fails(capfd, model, "--port", 70_000, *runtime)
    said = fails(capfd, model, "--runtime", tmp_path)
    assert f"{tmp_path} must hold @litertjs/core {VERSION}" in said
    assert "Received: a folder without it." in said
    old = make_runtime(tmp_path / "old", "0.0.1")
    assert "Received: 0.0.1." in fails(capfd, model, "--runtime", old)


def test_unsuitable_file_is_refused(tmp_path, installed, capfd):
    path, runtime = tmp_path / "file.tflite", ("--runtime", installed)
    path.write_bytes(described_file.content(form="steps", max_bytes=None))
    error = fails(capfd, path, *runtime)
    assert f"Received: {path}, of the form 'steps'" in error
    content = bytearray(described_file.content())
    content[-200] ^= 1
    path.write_bytes(content)
    assert f"{path} is damaged" in fails(capfd, path, *runtime)
    path.write_bytes(b"\x1c\0\0\0TFL3 and so on")
    assert f"{path} is damaged" in fails(capfd, path, *runtime)


def test_broken_cache_has_remedy(cache, capfd, model):
    make_runtime(cache / f"litertjs-{VERSION}", "0.0.1")
    assert "Delete that folder and try again." in fails(capfd, model)


def start(*arguments, **settings):
    program = "import sys; from keras_vanilla_cli import main; status = main()\n"
    program += "sys.exit(status or 'keras' in sys.modules)"
    return subprocess.Popen(
        [sys.executable, "-c", program, "serve-web", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )


def test_starts_without_keras_and_ends_on_ctrl_c(model, installed):
    options = ["--port", 0, "--runtime", installed, "--no-browser"]
    with start(model, *options) as program:
        line = program.stdout.readline()
        port = int(re.match(r"http://127\.0\.0\.1:(\d+)/ ", line)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/")
        assert b"<title>Translator</title>" in connection.getresponse().read()
        program.send_signal(signal.SIGINT)
        out, err = program.communicate(timeout=120)
    assert (program.returncode, out, err) == (0, "", "")
