"""Serves the page, LiteRT.js and one model, to this machine only."""

import os
import shutil
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from keras_vanilla.web.runtime import PAGE

# Not `mimetypes`, which asks the system: a wrong answer there keeps WASM from loading.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
HEADERS = {
    "Cache-Control": "no-cache",  # asks again each time: the model may be another one
    "X-Content-Type-Options": "nosniff",
    # The page and its worker reach nothing but this server.
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' blob: 'wasm-unsafe-eval'; "
        "frame-ancestors 'none'"
    ),
}


class PageServer(ThreadingHTTPServer):
    """A server of the page and one model on 127.0.0.1; `serve_forever` runs it.

    Only the files of a fixed list are served. They are read again for each request, so
    that a reload of the page loads a model that was exported again.

    Args:
        model: path of a `.tflite` file.
        runtime: path of npm's folder `@litertjs`.
        port: int. 0 means any free one.
    Raises:
        ValueError: if the model is not a `.tflite` file, or the port cannot be used.
        FileNotFoundError: if there is no such model.
    """

    daemon_threads = True
    # On Windows this would let two programs share a port.
    allow_reuse_address = os.name == "posix"

    def __init__(self, model: str | Path, runtime: str | Path, port: int = 0):
        check_model(model)
        self.files = _files(Path(model), Path(runtime))
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise ValueError(
                f"Port {port} cannot be used ({getattr(error, 'strerror', error)}); "
                "--port chooses another, 0 any free one."
            ) from None

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(
        self, request: socket.socket, client_address: tuple[str, int]
    ) -> None:
        """Ignores the error of a browser that closes its connection early."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def check_model(path: str | Path) -> None:
    """Refuses a file that is not a `.tflite` file; the page checks its contents."""
    with open(path, "rb") as file:
        begin = file.read(8)
    if begin[4:] != b"TFL3":
        raise ValueError(f"{path} must be a .tflite file. Received: {begin!r}...")


def _files(model, runtime):
    """The file behind each path."""
    files = {f"/{path.name}": path for path in PAGE.iterdir() if path.suffix in TYPES}
    files["/"] = PAGE / "index.html"
    files["/translator.tflite"] = model
    for path in runtime.rglob("*"):
        if path.suffix in (".js", ".wasm"):
            files[f"/runtime/{path.relative_to(runtime).as_posix()}"] = path
    return files


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._answer(with_body=True)

    def do_HEAD(self):
        self._answer(with_body=False)

    def _answer(self, with_body):
        path = self.server.files.get(unquote(urlsplit(self.path).path))
        try:
            file = open(path, "rb") if path else None
        except OSError:
            file = None
        if file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with file:
            self._send(file, path.suffix, with_body)

    def _send(self, file, suffix, with_body):
        facts = os.fstat(file.fileno())
        # With the inode: an older file may be moved to the model's path.
        mark = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}-{facts.st_ino:x}"'
        known = self.headers.get("If-None-Match") == mark
        self.send_response(HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("ETag", mark)
        self.send_header("Content-Type", TYPES.get(suffix, "application/octet-stream"))
        if not known:
            self.send_header("Content-Length", str(facts.st_size))
        self.end_headers()
        if with_body and not known:
            shutil.copyfileobj(file, self.wfile)

    def log_message(self, format, *args):
        """Logs nothing: the page shows what its user needs to know."""
