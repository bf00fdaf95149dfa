"""An HTTP server with a bound on the number of its connections and on every wait."""

import os
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MOST_CONNECTIONS = 64  # a browser opens six
LONGEST_WAIT = 30.0  # seconds for a request to come, or for a reader to take some bytes


class BoundedServer(ThreadingHTTPServer):
    """A server that half-open requests cannot fill: each connection is a thread.

    A request must be complete `LONGEST_WAIT` seconds after the server began to wait for
    it, however slowly it comes. When there are `MOST_CONNECTIONS`, a new one takes the
    place of the one that has waited longest.

    Args:
        address: host and port; port 0 means any free one.
        handler: BoundedHandler's subclass that answers the requests.
    """

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS
    # On Windows this would let two programs share a port.
    allow_reuse_address = os.name == "posix"

    def __init__(
        self, address: tuple[str, int], handler: type["BoundedHandler"]
    ) -> None:
        self._waiting = {}  # connection -> since when; the longest wait comes first
        self._answering = set()
        super().__init__(address, handler)

    def begin_wait(self, connection: socket.socket) -> None:
        """Notes that a connection waits for a request from now on."""
        self._answering.discard(connection)
        self._waiting[connection] = time.monotonic()

    def end_wait(self, connection: socket.socket) -> None:
        """Notes that a connection's request is there."""
        self._waiting.pop(connection, None)
        self._answering.add(connection)

    def process_request(
        self, request: socket.socket, client_address: tuple[str, int]
    ) -> None:
        """Begins with a new connection, in a thread of its own."""
        if len(self._waiting) + len(self._answering) >= MOST_CONNECTIONS:
            if not self._waiting:
                self.shutdown_request(request)
                return
            self._cut(next(iter(self._waiting)))
        self.begin_wait(request)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Ends the connections that have waited too long; called twice a second."""
        now = time.monotonic()
        for connection, since in list(self._waiting.items()):
            if now - since > LONGEST_WAIT:
                self._cut(connection)

    def close_request(self, request: socket.socket) -> None:
        """Forgets a connection that has ended."""
        self._waiting.pop(request, None)
        self._answering.discard(request)
        super().close_request(request)

    def handle_error(
        self, request: socket.socket, client_address: tuple[str, int]
    ) -> None:
        """Ignores the error of a browser that closes its connection early."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def _cut(self, connection):
        """Lets the thread that reads from a connection see its end."""
        self._waiting.pop(connection, None)
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # it has ended meanwhile
            pass


class BoundedHandler(BaseHTTPRequestHandler):
    """Answers requests, and tells its `BoundedServer` when it waits for one."""

    timeout = LONGEST_WAIT
    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # of lines without one: 0.9 has no headers

    def handle_one_request(self) -> None:
        """Waits for a request and answers it."""
        self.server.begin_wait(self.connection)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Reads the request's headers, which ends the wait."""
        try:
            return super().parse_request()
        finally:
            self.server.end_wait(self.connection)
