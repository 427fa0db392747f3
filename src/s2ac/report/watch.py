"""Serve a run's page while it goes: on the loopback interface only, and too seldom to slow the training down.

A refresh reads the new lines of metrics.jsonl and summarises. It loads no checkpoint and compiles nothing, so the
clouds are left to the report. The page asks again after a hundred times as long as the last refresh took.
"""

import os
import socket
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from s2ac.errors import InvalidArgument, S2acError
from s2ac.report.data import collect
from s2ac.report.page import render
from s2ac.report.records import Reader
from s2ac.text import printable, to_json

ADDRESS = "127.0.0.1"
SHORTEST_WAIT = 2.0
"""Seconds between two refreshes, at least."""

REST = 100.0
"""How many times as long as a refresh took the page waits before the next one: a share of 1 % of one core."""

MOST_CONNECTIONS = 32
"""At once: a browser opens six."""

PATIENCE = 20.0
"""Seconds that a connection may last, from its beginning to the end of the answer."""

NO_CLOUDS = "Action clouds need the networks, so they are left out while watching: `s2ac report` draws them."


class Watcher:
    """The run's data, renewed when its files have changed."""

    def __init__(self, directory: Path) -> None:
        self.reader = Reader(directory)
        self.guard = threading.Lock()
        self.version, self.state, self.wait, self.data = 0, "", SHORTEST_WAIT, {}  # type: tuple[int, str, float, Any]
        self.refresh()

    def refresh(self) -> tuple[int, dict[str, Any]]:
        """Version and data now; a new version only if something changed."""
        with self.guard:
            started = time.perf_counter()
            changed = self.reader.update()
            state = _look(self.reader.directory)
            if changed or state != self.state or not self.data:
                self.data = collect([self.reader], [NO_CLOUDS], live=True)
                self.version, self.state = self.version + 1, state
                self.wait = max(SHORTEST_WAIT, REST * (time.perf_counter() - started))
            self.data |= {"version_of_data": self.version, "wait": self.wait}
            return self.version, self.data


def _look(directory: Path) -> str:
    """What changes without a record: whether the run is locked, and its newest checkpoint."""
    newest = max((path.name for path in directory.glob("checkpoints/step_*")), default="")
    return f"{(directory / 'lock').exists()} {newest}"


def is_local(host: str, port: int) -> bool:
    """Whether the browser meant this machine: a foreign name that points here would let its site read the page."""
    names = (ADDRESS, "localhost")
    return host in {f"{name}:{port}" for name in names} or (port == 80 and host in names)  # 80 is left out


class Handler(BaseHTTPRequestHandler):
    """Answers GET of two paths, for a browser on this machine."""

    server_version, sys_version = "s2ac", ""
    server: "Server"

    def do_GET(self) -> None:
        """The page, or its data."""
        self._answer(*self._found())

    def _found(self) -> tuple[HTTPStatus, str, str]:
        """Status, type and text of the answer."""
        if self.request_version == "HTTP/0.9":  # its answers have no headers, which say what a browser may do with them
            return HTTPStatus.BAD_REQUEST, "text/plain", "HTTP/0.9 is too old\n"
        if not is_local(str(self.headers.get("Host", "")), self.server.server_address[1]):
            return HTTPStatus.FORBIDDEN, "text/plain", "this server answers to 127.0.0.1 and localhost only\n"
        path, _, query = self.path.partition("?")
        if path not in ("/", "/data.json"):
            return HTTPStatus.NOT_FOUND, "text/plain", "there is only / and /data.json\n"
        try:
            version, data = self.server.watcher.refresh()
            if path == "/":
                return HTTPStatus.OK, "text/html", render(data)
            if query == f"version={version}":
                return HTTPStatus.NO_CONTENT, "application/json", ""
            return HTTPStatus.OK, "application/json", to_json(data)
        except S2acError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", printable(str(error)) + "\n"

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Other methods and malformed requests: a plain line that repeats nothing of the request."""
        known = code in (HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.METHOD_NOT_ALLOWED)
        self.close_connection = True
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.BAD_REQUEST, "text/plain", "only GET\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: requests are no news, and their text is the sender's."""


class Server(ThreadingHTTPServer):
    """The server with its watcher. A connection has so much time for everything, and there are only so many at once."""

    daemon_threads = True
    request_queue_size = 128  # connections that wait to be taken: refused ones are not told to try again

    def __init__(self, watcher: Watcher, port: int) -> None:
        self.watcher, self.patience = watcher, PATIENCE
        self.guard = threading.Lock()
        self.until: dict[Any, float] = {}  # connection to the time at which it is ended
        super().__init__((ADDRESS, port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection, if there are not too many; others are ended unheard."""
        with self.guard:
            welcome = len(self.until) < MOST_CONNECTIONS
            if welcome:
                self.until[request] = time.monotonic() + self.patience
        if welcome:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """The end of a connection."""
        with self.guard:
            self.until.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Twice a second: end the connections whose time is over, whichever side keeps the other waiting."""
        now = time.monotonic()
        with self.guard:
            late = [request for request, until in self.until.items() if until < now]
        for request in late:
            with suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away in the middle of an answer is no error."""


def make_server(directory: Path, port: int = 0) -> Server:
    """A server for the run; `serve_forever` starts it. Port 0 takes a free one."""
    if not 0 <= port <= 65535:
        raise InvalidArgument(f"port = {port}: must be between 0 and 65535, 0 for any free one")
    watcher = Watcher(directory)
    try:
        return Server(watcher, port)
    except OSError as error:
        raise S2acError(f"cannot listen on {ADDRESS}:{port}: {error.strerror}; try --port 0") from error


def run_watch(directory: Path, port: int) -> None:
    """Serve until Ctrl-C."""
    with make_server(directory, port) as server:
        os.nice(10)  # the training goes first
        print(f"watching {printable(str(directory))} at http://{ADDRESS}:{server.server_address[1]}/", flush=True)
        print("Ctrl-C ends the server; the run continues", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped watching", flush=True)
