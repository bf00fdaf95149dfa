"""Serves the page, LiteRT.js and a model, or a site, to this machine only."""

import os
import re
import sys
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from keras_vanilla._types import PathLike
from keras_vanilla.export.metadata.flatbuffer import read_description
from keras_vanilla.pretrained import model_not_found
from keras_vanilla.web.runtime import PAGE

# `mimetypes` reads the system's settings, and WASM does not load if they are wrong.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".tflite": "application/octet-stream",
}
HEADERS = {
    "Cache-Control": "no-store",  # the model may be exported again at any time
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # The page and its worker can only access this server.
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
MODEL = "translator.tflite"
# Other names of 127.0.0.1 could belong to a web site whose scripts read the model.
OUR_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.IGNORECASE)


class PageServer(ThreadingHTTPServer):
    """A server of the page and a model, or of a site; `serve_forever` runs it.

    It listens on 127.0.0.1 only, and serves only a fixed list of files to requests
    whose Host header names this machine. Links that leave their folder are not in the
    list. Files are read for each request, so that reloading the page loads a model that
    was exported again.

    Args:
        model: path of a `.tflite` file, or of a folder written by `write_site`.
        runtime: path of npm's folder `@litertjs`; None for a site, which includes it.
        port: int. 0 means any free port.
    Raises:
        FileNotFoundError, ValueError: as in `check_model`.
        ValueError: if the port cannot be used.
    """

    # On Windows, True would allow two programs to share a port.
    allow_reuse_address = os.name == "posix"

    def __init__(self, model: PathLike, runtime: PathLike | None = None, port: int = 0):
        check_model(model)
        if Path(model).is_dir():
            self.files = _files(model)
        else:
            self.files = _files(PAGE) | {f"/{MODEL}": str(model)}
            for url, path in _files(runtime, (".js", ".wasm")).items():
                self.files[f"/runtime{url}"] = path
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise ValueError(
                f"Port {port} cannot be used: {error}. --port 0 means any free port."
            ) from None

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores errors of browsers that close the connection early."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def check_model(path: PathLike) -> None:
    """Refuses a file or a site that the page could not translate with.

    Args:
        path: path of a `.tflite` file, or of a folder written by `write_site`.
    Raises:
        FileNotFoundError: if `path` does not exist.
        ValueError: if it is not the `.tflite` file or the site of a translator, or is
            damaged.
    """
    path = Path(path)
    if not path.exists():
        raise model_not_found(path)
    if path.is_dir():
        if f"/{MODEL}" not in _files(path):
            raise ValueError(
                "A folder must be a site, which `keras-vanilla export --form site` "
                f"writes. Received: {path}, without {MODEL}"
            )
        path = path / MODEL
    form = read_description(path).form
    if form != "text":
        raise ValueError(
            f"The page needs a file of the form 'text', which `keras-vanilla export` "
            f"writes without --form. Received: {path}, of the form {form!r}"
        )


def _files(folder, suffixes=TYPES):
    """Returns the files with these suffixes inside a folder, by URL path."""
    root = Path(folder).resolve()
    return {
        f"/{path.relative_to(root).as_posix()}": str(path)
        for path in root.rglob("*")
        if path.suffix in suffixes and path.is_file()
        if path.resolve().is_relative_to(root)
    }


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # if it is missing; 0.9 has no headers
    server_version, sys_version = "keras-vanilla", ""
    extensions_map = TYPES

    def send_head(self) -> BinaryIO | None:
        """Sends the headers of a file and returns it, or sends an error."""
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not OUR_HOST.fullmatch(hosts[0].strip()):
            explain = "This page is at localhost and 127.0.0.1 only."
            return self.send_error(HTTPStatus.MISDIRECTED_REQUEST, explain=explain)
        return super().send_head()

    def translate_path(self, path: str) -> str:
        """Returns the file for a URL, or a path that no file has."""
        url = unquote(path.partition("?")[0])
        return self.server.files.get(re.sub("/$", "/index.html", url), "")

    def end_headers(self):
        """Adds the common headers to all responses, including errors."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format, *args):
        """Logs nothing, because the page shows all messages."""
