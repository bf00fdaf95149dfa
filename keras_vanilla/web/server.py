"""Serves the page, LiteRT.js and a model, or a site, to this machine only."""

import os
import re
import shutil
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from keras_vanilla._types import PathLike
from keras_vanilla.export.metadata.description import read_description
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
}
HEADERS = {
    "Cache-Control": "no-cache",  # revalidated, as the model may change
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # The page and its worker can only access this server.
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' blob: 'wasm-unsafe-eval'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}
MODEL = "translator.tflite"
# Other names of 127.0.0.1 could belong to a web site whose scripts read the model.
OUR_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.IGNORECASE)


class PageServer(ThreadingHTTPServer):
    """A server of the page and a model, or of a site; `serve_forever` runs it.

    It listens on 127.0.0.1 only, and serves only a fixed list of files to requests
    whose Host header names this machine. Files are read for each request, so that
    reloading the page loads a model that was exported again.

    Args:
        model: path of a `.tflite` file, or of a folder written by `write_site`.
        runtime: path of npm's folder `@litertjs`; None for a site, which includes it.
        port: int. 0 means any free port.
    Raises:
        FileNotFoundError, IsADirectoryError, ValueError: as in `check_model`.
        ValueError: if the port cannot be used.
    """

    # On Windows, True would allow two programs to share a port.
    allow_reuse_address = os.name == "posix"

    def __init__(self, model: PathLike, runtime: PathLike | None = None, port: int = 0):
        check_model(model)
        if Path(model).is_dir():
            self.files = _files(Path(model), (*TYPES, ".tflite"))
        else:
            code = _files(Path(runtime), (".js", ".wasm"))
            self.files = _files(PAGE, TYPES) | {f"/{MODEL}": Path(model)}
            self.files |= {f"/runtime{url}": path for url, path in code.items()}
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ValueError(
                f"Port {port} cannot be used ({reason}); "
                "--port chooses another, 0 any free one."
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
        if not (path / MODEL).is_file():
            raise ValueError(
                "A folder must be a site, which `keras-vanilla export --form site` "
                f"writes. Received: {path}, without {MODEL}"
            )
        path = path / MODEL
    if path.suffix == ".keras":
        raise ValueError(
            "The page translates with a .tflite file, which `keras-vanilla export` "
            f"writes. Received: {path}"
        )
    form = read_description(path).form
    if form != "text":
        raise ValueError(
            f"The page needs a file of the form 'text', which `keras-vanilla export` "
            f"writes without --form. Received: {path}, of the form {form!r}"
        )


def _files(folder, suffixes):
    """Returns the files with these suffixes in a folder, by URL path."""
    paths = (path for path in folder.rglob("*") if path.suffix in suffixes)
    files = {f"/{path.relative_to(folder).as_posix()}": path for path in paths}
    indexes = [url for url in files if url.endswith("/index.html")]
    return files | {url.removesuffix("index.html"): files[url] for url in indexes}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # if it is missing; 0.9 has no headers

    def do_GET(self):
        self._answer(with_body=True)

    def do_HEAD(self):
        self._answer(with_body=False)

    def _answer(self, with_body):
        if not self._names_this_machine():
            explain = "This page is at localhost and 127.0.0.1 only."
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, explain=explain)
            return
        try:
            path = self.server.files[unquote(urlsplit(self.path).path)]
            file = open(path, "rb")
        except (KeyError, ValueError, OSError):  # unknown path, URL or file
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with file:
            self._send(file, path.suffix, with_body)

    def _names_this_machine(self):
        hosts = self.headers.get_all("Host", [])
        return len(hosts) == 1 and bool(OUR_HOST.fullmatch(hosts[0].strip()))

    def _send(self, file, suffix, with_body):
        facts = os.fstat(file.fileno())
        # Includes the inode, as an older file may be moved to the model's path.
        mark = f'"{facts.st_mtime_ns:x}-{facts.st_size:x}-{facts.st_ino:x}"'
        known = self.headers.get("If-None-Match") == mark
        self.send_response(HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK)
        self.send_header("ETag", mark)
        self.send_header("Content-Type", TYPES.get(suffix, "application/octet-stream"))
        if not known:
            self.send_header("Content-Length", str(facts.st_size))
        self.end_headers()
        if with_body and not known:
            shutil.copyfileobj(file, self.wfile)

    def end_headers(self):
        """Adds the common headers to all responses, including errors."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def version_string(self):
        """Returns the program's name without versions."""
        return "keras-vanilla"

    def log_message(self, format, *args):
        """Logs nothing, because the page shows all messages."""
