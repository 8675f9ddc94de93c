"""`rag-lab open`, asked over HTTP as browsers and strangers ask it."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from browser import axe_faults, browser, needs_browser, watch
from run_folder_fixture import build_run
from synthetic_run import GRID, MAIN, factorial, write_run

from rag_lab.errors import ConfigError, RagLabError
from rag_lab.report.live_report import QUESTIONS, REPORT, LiveReport, LiveServer
from rag_lab.report.page.question_pages import FOLDER
from rag_lab.report.page.report_page import HTML_FILE, write_report
from rag_lab.report.page.templates import anchors
from rag_lab.runs.human_input import LABELS_FILE, read_labels
from rag_lab.runs.run_folder import MANIFEST_FILE, SCORES_FILE, RunFolder
from rag_lab.runs.variant_files import read_scores, write_scores


def unfinished(path: Path, scored=()) -> RunFolder:
    """A run as it lies there while its sweep runs: some variants are whole, and nothing of all is written."""
    run = write_run(path, GRID, {MAIN: factorial()})
    scores = read_scores(path / SCORES_FILE)
    for name in GRID:
        write_scores(run.variant_dir(name) / SCORES_FILE, scores[scores["variant_id"] == name])
    (path / SCORES_FILE).unlink()
    (path / MANIFEST_FILE).unlink()
    for name in scored:
        end(run, name)
    return run


def end(run, name):
    (run.variant_dir(name) / "done.json").write_text("{}")


@pytest.fixture
def serve():
    """Serve a run folder on a free port until the test ends."""
    servers = []

    def start(folder):
        server = LiveServer(LiveReport(folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def ask(server, path=None, method="GET", host=None, click=None, kind="application/json"):
    """Return status, headers and body of a request; `path` is below the token unless it begins with a slash."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    target = path if path is not None and path.startswith("/") else f"/{server.token}/{path or ''}"
    headers = {"Host": host} if host else {}
    if click is None:
        connection.request(method, target, headers=headers)
    else:
        body = click if isinstance(click, str) else json.dumps(click)
        connection.request("POST", target, body, headers | {"Content-Type": kind})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.headers), body


def test_the_names_that_are_served_are_those_that_are_written():
    assert (REPORT, QUESTIONS) == (HTML_FILE, FOLDER)


@pytest.mark.parametrize("line", ["GET foo HTTP/1.1", "GET foo", "GET", "HEAD * HTTP/1.1", "\x16\x03\x01"])
def test_what_is_no_request_of_a_browser_is_refused_without_a_traceback(tmp_path, serve, capfd, line):
    server = serve(write_run(tmp_path / "run", GRID, {MAIN: factorial()}).path)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall(f"{line}\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile().read()
    assert "The token" in answer or "can be read, and nothing else" in answer or answer.startswith("HTTP/1.0 403")
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("name", ["report.html", "questions"])
def test_nothing_is_served_through_a_link_out_of_the_run(tmp_path, serve, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "q-1.html").write_text("private")
    server = serve(write_run(tmp_path / "run", GRID, {MAIN: factorial()}).path)
    leads_to = tmp_path / "mine" if name == "questions" else tmp_path / "mine" / "q-1.html"
    (tmp_path / "run" / name).symlink_to(leads_to)
    for path in ("", "report.html", "questions/q-1.html"):
        status, _, body = ask(server, path)
        assert (status, "private" in body) == (503, False)
        assert "is a link that leads out of the run" in body


def test_a_finished_run_is_the_very_page_of_its_folder(tmp_path, serve):
    run = write_run(tmp_path, GRID, {MAIN: factorial()})
    page = write_report(run.path).read_text()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    status, headers, body = ask(serve(run.path))
    notice = body[body.index('<aside id="live"') : body.rindex("</body>")]
    policy = re.compile(r"connect-src 'self'; (script-src ')sha256-[^']*' '")
    assert (status, policy.sub(r"\1", body.replace(notice, ""))) == (200, page)
    assert '<a href="rate">Rate answers</a>' in notice and "Running" not in notice
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_silent_and_slow_strangers_keep_nobody_from_the_report(tmp_path, serve):
    server = serve(write_run(tmp_path, GRID, {MAIN: factorial()}).path)
    before = threading.active_count()
    strangers = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(150)]
    for one in strangers[100:]:
        one.sendall(b"GET /state HTTP/1.1\r\nHost: ")  # and no more
    assert ask(server, "state")[0] == 200
    assert strangers[0].recv(1) == b""
    assert threading.active_count() - before < 100
    for one in strangers:
        one.close()


def test_who_asks_and_does_not_read_is_no_fault(tmp_path, serve, monkeypatch, capsys):
    before = set(threading.enumerate())  # servers of other tests may hold connections
    server = serve(write_run(tmp_path, GRID, {MAIN: factorial()}).path)
    monkeypatch.setattr(server.RequestHandlerClass, "timeout", 0.2)
    monkeypatch.setattr(server.report, "page", lambda: "x" * 50_000_000)
    with socket.create_connection(("127.0.0.1", server.server_port)) as slow:
        slow.sendall(f"GET /{server.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        assert ask(server, "state")[0] == 200
        while any("process_request" in thread.name for thread in set(threading.enumerate()) - before):
            time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_the_pages_of_questions_beside_a_long_report_are_served_and_nothing_beside_them(tmp_path, serve):
    run = write_run(tmp_path / "run", GRID, {MAIN: factorial()})
    write_report(run.path)
    (run.path / "questions").mkdir(exist_ok=True)
    (run.path / "questions/q-q1.html").write_text("one question")
    (run.path / "questions/notes.txt").write_text("private")
    (tmp_path / "elsewhere.html").write_text("private")
    (run.path / "questions/q-link.html").symlink_to(run.path / "questions/notes.txt")
    server = serve(run.path)
    assert ask(server, "questions/q-q1.html")[::2] == (200, "one question")
    assert ask(server, "report.html")[2] == ask(server)[2]
    others = ("notes.txt", "q-link.html", "../plan.json", "..%2fplan.json", "../../elsewhere.html", "", "q-gone.html")
    for path in others:
        status, _, body = ask(server, f"questions/{path}")
        assert status == 404 and "private" not in body, path


def test_a_run_that_goes_on_shows_what_is_whole_and_follows_it(tmp_path, serve):
    run = unfinished(tmp_path, ["none-none", "always-none"])
    server = serve(run.path)
    before, (_, _, page) = ask(server, "state")[2], ask(server)
    assert "Running: 2 of 4 variants have scores." in page and f'data-state="{before}"' in page
    assert "connect-src &#39;self&#39;" in page or "connect-src 'self'" in page
    assert not (run.path / "report.html").exists()
    end(run, "none-query_likelihood")
    assert ask(server, "state")[2] != before
    assert "Running: 3 of 4 variants have scores." in ask(server)[2]


def test_a_run_without_scores_says_so_and_waits(tmp_path, serve):
    status, _, page = ask(serve(unfinished(tmp_path).path))
    assert status == 200
    assert "0 of 4 variants have scores" in page and 'id="live"' in page


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"path": "/"}, 403, "token"),
        ({"path": "/wrong/"}, 403, "token"),
        ({"path": "/wrong/state"}, 403, "token"),
        ({"path": "/%00/"}, 403, "token"),
        ({"path": "plan.json"}, 404, "Only the report"),
        ({"path": "../plan.json"}, 404, "Only the report"),
        ({"path": "..%2f..%2fetc/passwd"}, 404, "Only the report"),
        ({"path": "variants/none-none/traces.jsonl"}, 404, "Only the report"),
        ({"host": "evil.example"}, 403, "this machine alone"),
        ({"host": "127.0.0.1"}, 403, "this machine alone"),
        ({"host": "localhost.evil.example:80"}, 403, "this machine alone"),
        ({"method": "PUT"}, 501, "can be read"),
        ({"method": "DELETE", "path": "plan.json"}, 501, "can be read"),
    ],
    ids=str,
)
def test_whatever_else_is_asked_is_refused_in_a_sentence(tmp_path, serve, asked, status, said):
    run = unfinished(tmp_path, ["none-none"])
    server = serve(run.path)
    got, headers, body = ask(server, **asked)
    assert got == status and said in body
    assert len(body.splitlines()) == 1 and headers["Content-Type"].startswith("text/plain")
    assert server.token not in body


def test_the_name_localhost_is_this_machine_too(tmp_path, serve):
    server = serve(unfinished(tmp_path, ["none-none"]).path)
    assert ask(server, "state", host=f"localhost:{server.server_port}")[0] == 200
    assert ask(server, "state", method="HEAD")[2] == ""


def test_it_listens_on_loopback_alone_and_each_start_has_a_token_of_its_own(tmp_path, serve):
    run = unfinished(tmp_path)
    first, second = serve(run.path), serve(run.path)
    assert first.server_address[0] == "127.0.0.1"
    assert first.token != second.token and len(first.token) >= 32
    with pytest.raises(ConfigError, match="choose another"):
        LiveServer(LiveReport(run.path), first.server_port)


def test_a_damaged_or_lost_run_is_a_sentence(tmp_path, serve):
    run = unfinished(tmp_path / "run", ["none-none"])
    server = serve(run.path)
    (run.variant_dir("none-none") / SCORES_FILE).write_bytes(b"cut")
    status, _, page = ask(server)
    assert status == 200 and "is damaged" in page
    (run.path / "plan.json").unlink()
    status, _, said = ask(server)
    assert status == 503 and "no run folder" in said
    with pytest.raises(RagLabError):
        LiveReport(tmp_path)


@pytest.mark.slow
@needs_browser
def test_a_browser_loads_the_page_anew_when_scores_arrive_and_asks_nobody_else(tmp_path, serve):
    run = unfinished(tmp_path, ["none-none", "always-none"])
    server = serve(run.path)
    with browser() as page:
        seen = watch(page)
        page.goto(server.address)
        assert "2 of 4" in page.locator("#live").inner_text()
        end(run, "none-query_likelihood")
        page.locator("#live", has_text="3 of 4").wait_for()
        asked = {url.partition("?")[0] for url in seen.requests}
    assert {url for url in asked if not url.startswith(server.address)} == set()
    assert seen.errors == [] and seen.dialogs == []


@pytest.mark.slow
def test_the_command_says_where_and_ends_quietly(tmp_path):
    run = write_run(tmp_path, GRID, {MAIN: dict.fromkeys(GRID, np.linspace(0, 1, 20))})
    script = "import sys; sys.argv[0] = 'rag-lab'; from rag_lab.cli import main; main()"
    command = [sys.executable, "-c", script, "open", str(run.path), "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        said = process.stdout.readline()
        assert said.startswith("synthetic: http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_an_answer_is_rated_over_http_without_the_name_of_its_variant(tmp_path, serve):
    run = build_run(tmp_path / "run", 12, 2)
    server = serve(run.path)
    status, headers, page = ask(server, "rate")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    shown = page[page.index('id="clicked"') :]
    assert "query_likelihood" not in shown and "baseline" not in shown and "0 of " in shown
    assert "<script>alert" not in page and "&lt;script&gt;alert" in ask(server, "rate?question=q-q001")[2]
    status, _, inner = ask(server, "rate", click={"do": "rate", "value": "up", "typed": {"note": "  right page "}})
    assert status == 200 and "1 of " in inner and "<html" not in inner
    (label,), problems = read_labels(run.path / LABELS_FILE)
    assert (label.rating, label.note, problems) == ("up", "right page", [])
    assert "sideways" in ask(server, "rate", click={"do": "rate", "value": "sideways"})[2]
    question = anchors(one.question_id for one in read_labels(run.path / LABELS_FILE)[0])
    page = ask(server, f"rate?question={next(iter(question.values()))}")[2]
    assert "of 2 rated" in page or "of 1 rated" in page
    assert ask(server, "rate?question=q-none")[0] == 503


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"click": "{"}, 400, "JSON object"),
        ({"click": "[1]"}, 400, "JSON object"),
        ({"click": {}, "kind": "text/plain"}, 400, "JSON object"),
        ({"click": {"typed": {"note": "x" * 70_000}}}, 400, "65,536 bytes"),
        ({"click": {}, "path": "state"}, 404, "nothing else"),
        ({"click": {}, "path": "/wrong/rate"}, 403, "token"),
        ({"click": {}, "host": "evil.example"}, 403, "this machine"),
    ],
)
def test_what_is_no_click_is_refused_in_a_sentence(tmp_path, serve, asked, status, said):
    server = serve(build_run(tmp_path / "run", 4, 2).path)
    found, _, body = ask(server, **{"path": "rate", **asked})
    assert found == status and said in body
    assert not (tmp_path / "run" / LABELS_FILE).exists()


@needs_browser
@pytest.mark.slow
def test_a_browser_rates_by_keys_and_clicks_from_the_report(tmp_path, serve):
    run = build_run(tmp_path / "run", 12, 2)
    write_report(run.path)
    server = serve(run.path)
    with browser() as page:
        seen = watch(page)
        page.goto(server.address)
        assert page.locator("#cards a", has_text="Rate its answers").count() == 12
        page.get_by_text("Rate answers", exact=True).click()
        page.wait_for_selector("#clicked .row")
        page.keyboard.press("u")
        page.wait_for_selector("text=/^ *1 of /")
        page.fill("[name=note]", "no page")
        page.click("[data-value=down]")
        page.wait_for_selector("text=/^ *2 of /")
        assert axe_faults(page) == []
        server.shutdown()
        server.server_close()
        page.keyboard.press("u")
        page.wait_for_selector("text=The server has ended")
    assert seen.dialogs == [] and all("127.0.0.1" in one for one in seen.requests)
    assert [(one.rating, one.note) for one in read_labels(run.path / LABELS_FILE)[0]] == [
        ("up", ""),
        ("down", "no page"),
    ]
