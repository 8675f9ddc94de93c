"""The report of a run as it is now, and the server that shows it."""

import hashlib
import re
import secrets
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

from markupsafe import Markup

from rag_lab.errors import ConfigError, RagLabError, unknown_name
from rag_lab.report.page.templates import asset, script_digest, with_script
from rag_lab.runs.run_folder import MANIFEST_FILE, RunFolder, refuse_links_out, strict_json

REPORT = "report.html"
QUESTIONS = "questions"  # the folder of their pages
_RUNNING = '<span>Running: {}.</span> <a href="" hidden>Load the new scores</a> '
LOOPBACK = "127.0.0.1"
_LONGEST_CLICK = 65_536  # bytes
_MOST_STRANGERS = 64  # connections that have not shown the token: any user of this machine can open some
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class LiveReport:
    """The report of the run in `folder`. Safe to ask from several threads; a page is made once for what is there."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self.name = RunFolder.open(folder).name
        self._lock = Lock()
        self._built = ("", "")  # a state and its page
        self._ratings: tuple[str, Any, dict[str, Any]] = ("", None, {})  # a state, its comparison, pages by question

    def state(self) -> str:
        """Return what changes where the page does: which variants have scores, and whether the run is finished."""
        run = RunFolder.open(self._folder)
        manifest = run.path / MANIFEST_FILE
        ended = str(manifest.stat().st_mtime_ns) if manifest.is_file() else ""
        parts = "\n".join([*(variant.variant_id for variant in run.variants), "", *run.scored(), "", ended])
        return hashlib.sha256(parts.encode()).hexdigest()[:16]

    def page(self) -> str:
        """Return the page; where it cannot be made yet, one that says why and waits."""
        with self._lock:
            state = self.state()
            if self._built[0] != state:
                self._built = (state, self._page(state))
            return self._built[1]

    def question_page(self, name: str) -> str | None:
        """Return the page of one question, of a run whose report is too long for one file; None for any other name."""
        refuse_links_out(self._folder)
        path = self._folder / QUESTIONS / name
        is_one = re.compile(r"q-[A-Za-z0-9._-]+\.html").fullmatch(name) and path.is_file() and not path.is_symlink()
        return path.read_text(encoding="utf-8") if is_one else None

    def rate(self, anchor: str, message: Mapping[str, Any] | None = None) -> str:
        """Return the page on which answers are rated, or what becomes of it by a click.

        They are those that were drawn, or all of the question with an anchor of the report; a RagLabError where the run
        has none, or no such question.
        """
        from rag_lab.comparison.comparison import read_comparison
        from rag_lab.report.page.clicked import Rating
        from rag_lab.report.page.templates import anchors, render

        with self._lock:
            state = self.state()
            if self._ratings[0] != state:
                self._ratings = (state, read_comparison(self._folder), {})
            _, comparison, ratings = self._ratings
            if anchor not in ratings:
                asked = {place: name for name, place in anchors(comparison.asked).items()}
                if anchor and anchor not in asked:
                    raise ConfigError(unknown_name("question", anchor, asked))
                ratings[anchor] = Rating(comparison, question_id=asked.get(anchor, ""))
            shown: Rating = ratings[anchor]
            if message is not None:
                return shown.receive(message)
            script, style, run = asset("rate.js"), asset("card.css") + asset("clicked.css"), comparison.run
            digest, inner = f"{script_digest(script)}'; connect-src 'self", Markup(shown.to_html())  # noqa: S704 -- escaped before
            return render("rate_page.html", run=run, inner=inner, style=style, script=script, script_digest=digest)

    def _page(self, state: str) -> str:
        run = RunFolder.open(self._folder)
        report, is_finished = run.path / REPORT, (run.path / MANIFEST_FILE).is_file()
        scored = f"{len(run.scored())} of {len(run.variants)} variants have scores"
        # A notice; while the run goes on also a script that loads the page anew where the state is no longer this one.
        script = asset("rate_links.js") + ("" if is_finished else asset("live.js"))
        told = Markup("" if is_finished else _RUNNING).format(scored)  # noqa: S704 -- our own text
        notice = asset("live.html").format(state=state, told=told, script=script)
        if is_finished and report.is_file():
            return with_script(report.read_text(encoding="utf-8"), notice, script)
        from rag_lab.comparison.comparison import read_comparison
        from rag_lab.report.page.report_page import to_html
        from rag_lab.report.page.templates import render

        try:
            page = to_html(read_comparison(run.path))
        except RagLabError as error:
            reason, style = str(error) if run.scored() else "", asset("card.css") + asset("style.css")
            digest = script_digest(script)
            page = render("waiting.html", run=run, scored=scored, reason=reason, style=style, script_digest=digest)
        return with_script(page, notice, script)


class LiveServer(ThreadingHTTPServer):
    """Serves `report` on loopback, at `address`, with its token. Use `serve_forever` and `server_close`."""

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
        self.address = f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

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
        self._answer(None)

    do_HEAD = do_GET  # noqa: N815 - as the library names it

    def do_POST(self) -> None:
        """Take a click of the page on which answers are rated."""
        size = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != "application/json" or not size.isdigit() or int(size) > _LONGEST_CLICK:
            self._refuse(HTTPStatus.BAD_REQUEST, f"A click is a JSON object of at most {_LONGEST_CLICK:,} bytes.")
            return
        try:
            self._answer(dict(strict_json(self.rfile.read(int(size)))))
        except (ValueError, TypeError):
            self._refuse(HTTPStatus.BAD_REQUEST, "A click is a JSON object: {do, value, typed}.")

    def _answer(self, click: Mapping[str, Any] | None) -> None:
        if self.headers.get("Host", "") not in (
            f"{name}:{self.server.server_port}" for name in (LOOPBACK, "localhost")
        ):
            self._refuse(HTTPStatus.FORBIDDEN, "This report is served to this machine alone, under 127.0.0.1.")
            return
        address, _, query = self.path.partition("?")
        token, *rest = address.removeprefix("/").split("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "The token in the address is not the one that `rag-lab open` printed.")
            return
        self.server.let_in(self.request)
        report = self.server.report
        try:
            if rest == ["rate"]:
                self._send(HTTPStatus.OK, report.rate("".join(parse_qs(query).get("question", [])), click), "text/html")
            elif click is not None:
                self._refuse(HTTPStatus.NOT_FOUND, "The report can be read; answers can be rated, and nothing else.")
            elif rest in ([""], [REPORT]):
                self._send(HTTPStatus.OK, report.page(), "text/html")
            elif rest == ["state"]:
                self._send(HTTPStatus.OK, report.state(), "text/plain")
            elif len(rest) == 2 and rest[0] == QUESTIONS and (page := report.question_page(rest[1])) is not None:
                self._send(HTTPStatus.OK, page, "text/html")
            else:
                self._refuse(HTTPStatus.NOT_FOUND, "Only the report itself is served here.")
        except (RagLabError, OSError) as error:  # the folder was moved away, say
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is neither GET nor a click in one sentence, too."""
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
