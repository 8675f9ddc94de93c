"""Serves the report of one run to the browsers of this machine: nothing else can be read, and nothing written.

The address holds a token, so that no other user and no other page can guess it; requests under another name than
loopback's are refused, since a page from elsewhere could have its own name resolve to this machine (DNS rebinding).
"""

from __future__ import annotations

import secrets
import socket
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from rag_lab.errors import ConfigError, RagLabError
from rag_lab.report.live.live_report import QUESTIONS, REPORT, LiveReport

LOOPBACK = "127.0.0.1"
_MOST_STRANGERS = 64  # connections that have not shown the token: any user of this machine can open some
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class LiveServer(ThreadingHTTPServer):
    """Serves `report` on loopback; `address` is where. Use `serve_forever` and `server_close`."""

    daemon_threads = True
    request_queue_size = 2 * _MOST_STRANGERS

    def __init__(self, report: LiveReport, port: int = 0) -> None:
        self.report = report
        self.token = secrets.token_urlsafe(24)
        self._strangers: dict[Any, None] = {}  # their sockets, the oldest first
        self._lock = Lock()
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise ConfigError(f"Cannot listen on port {port}: {error.strerror}; choose another, or none.") from None

    @property
    def address(self) -> str:
        """The page's address, with its token."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection; of too many that have not shown the token the oldest is ended."""
        with self._lock:
            self._strangers[request] = None
            oldest = next(iter(self._strangers)) if len(self._strangers) > _MOST_STRANGERS else None
        if oldest is not None:
            self.let_in(oldest)
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def let_in(self, request: Any) -> None:
        """Count a connection no longer among the strangers."""
        with self._lock:
            self._strangers.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self.let_in(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a browser that went away while it was answered; anything else is a fault, and told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    server_version = "rag-lab"
    sys_version = ""
    timeout = 30  # seconds that a connection may be silent

    def do_GET(self) -> None:
        if self.headers.get("Host", "") not in (
            f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")
        ):
            self._refuse(HTTPStatus.FORBIDDEN, "This report is served to this machine alone, under 127.0.0.1.")
            return
        token, *rest = self.path.partition("?")[0].removeprefix("/").split("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "The token in the address is not the one that `rag-lab open` printed.")
            return
        self.server.let_in(self.request)
        try:
            self._answer(rest)
        except (RagLabError, OSError) as error:  # the folder was moved away, say
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _answer(self, names: list[str]) -> None:
        report = self.server.report
        if names in ([""], [REPORT]):
            self._send(HTTPStatus.OK, report.page(), "text/html")
        elif names == ["state"]:
            self._send(HTTPStatus.OK, report.state(), "text/plain")
        elif len(names) == 2 and names[0] == QUESTIONS and (page := report.question_page(names[1])) is not None:
            self._send(HTTPStatus.OK, page, "text/html")
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "Only the report itself is served here.")

    def do_HEAD(self) -> None:
        self.do_GET()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no GET in one sentence, too."""
        self._refuse(HTTPStatus(code), "The report can be read, and nothing else.")

    def log_message(self, *_: Any) -> None:
        """Stay silent: the terminal is the user's."""

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self.close_connection = True
        self._send(status, f"{sentence}\n", "text/plain")

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body)), **_HEADERS}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
