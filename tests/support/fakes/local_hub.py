"""A server on this machine that answers as the Hugging Face hub does."""

import contextlib
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

TOKEN = "hf_of_the_tests"
MAIN = "main"
PORTAL = 200, b"<html>Accept our conditions.</html>", {"Content-Type": "text/html"}
TO_PORTAL = 302, b"", {"Location": "/login"}


class LocalHub:
    """Models of the hub: their files by revision, and what was asked for.

    Attributes:
        url: str. Where it listens.
        requests: list of (method, path), in order.
        private, gated: sets of names of models that need a token.
        cuts: dict of file name -> list of bytes at which its next answers are cut.
        answer: tuple or None. Status, content and headers of every answer.
    """

    def __init__(self):
        self.requests, self.cuts = [], {}
        self.private, self.gated, self.answer = set(), set(), None
        self._commits, self._refs = {}, {}
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def add(self, name, folder, revision=MAIN):
        """A new commit of a model, with the files of a folder; returns the commit."""
        files = {p.name: p.read_bytes() for p in sorted(folder.iterdir())}
        content = b"".join(n.encode() + data for n, data in files.items())
        commit = hashlib.sha1(content).hexdigest()
        self._commits[name, commit] = files
        self._refs[name, revision] = commit
        return commit

    def files(self, name, revision):
        """The files of a revision by name, or None."""
        commit = self._refs.get((name, revision), revision)
        return commit, self._commits.get((name, commit))

    def knows(self, name):
        return any(model == name for model, _ in self._refs)

    def fetched(self):
        """The names of the files that were sent, or begun to be."""
        paths = [path for method, path in self.requests if method == "GET"]
        return [path.rpartition("/")[2] for path in paths if "/resolve/" in path]

    @contextlib.contextmanager
    def running(self):
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: LocalHub

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def log_message(self, *args):
        pass

    def _answer(self):
        hub, path = self.server_hub, unquote(urlsplit(self.path).path).strip("/")
        hub.requests.append((self.command, path))
        if hub.answer is not None:
            self._send(*(PORTAL if path == "login" else hub.answer))
        elif path.startswith("api/models/"):
            name, _, revision = path[len("api/models/") :].partition("/revision/")
            self._info(name, revision or MAIN)
        else:
            name, _, rest = path.partition("/resolve/")
            revision, _, file = rest.rpartition("/")
            self._file(name, revision, file)

    def _info(self, name, revision):
        found = self._found(name, revision)
        if found is None:
            return
        commit, files = found
        siblings = [{"rfilename": n, "size": len(files[n])} for n in files]
        info = {"id": name, "modelId": name, "sha": commit, "siblings": siblings}
        self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def _file(self, name, revision, file):
        hub = self.server_hub
        found = self._found(name, revision)
        if found is None:
            return
        commit, files = found
        headers = {"X-Repo-Commit": commit}
        if name in hub.gated and not self._has_token():
            self._send(403, b"", {"X-Error-Code": "GatedRepo"})
        elif file not in files:
            self._send(404, b"", headers | {"X-Error-Code": "EntryNotFound"})
        else:
            data = files[file]
            headers["ETag"] = f'"{hashlib.sha1(data).hexdigest()}"'
            self._send_part(data, headers, hub.cuts.get(file, []))

    def _found(self, name, revision):
        """The commit and its files; None after a refusal."""
        hub = self.server_hub
        if not hub.knows(name) or (name in hub.private and not self._has_token()):
            self._send(401, b"", {"X-Error-Code": "RepoNotFound"})
            return None
        commit, files = hub.files(name, revision)
        if files is None:
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
            return None
        return commit, files

    def _has_token(self):
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _send_part(self, data, headers, cuts):
        """The file from where the client asks for it, up to a cut if there is one."""
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        status = 206 if asked else 200
        if asked:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        if not cuts or self.command == "HEAD":
            self._send(status, data[start:], headers)
            return
        self._begin(status, len(data) - start, headers)
        self.wfile.write(data[start : cuts.pop(0)])
        self.close_connection = True

    def _send(self, status, content=b"", headers=None):
        self._begin(status, len(content), headers or {})
        if self.command != "HEAD":
            self.wfile.write(content)

    def _begin(self, status, length, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
