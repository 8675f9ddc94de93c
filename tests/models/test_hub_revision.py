"""A model of the hub is the same before its first download, after it, and when the hub has moved on."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = pytest.mark.slow

FIRST, SECOND = "1" * 40, "2" * 40

IDENTITIES = """
import json, sys, time, urllib.request
from rag_lab.errors import ModelError
from rag_lab.models import weights
from rag_lab.models.local.cross_encoder import CrossEncoderScorer

def look():
    weights._hub_revision.cache_clear()  # as in another process
    scorer = CrossEncoderScorer("lab/tiny")
    before = scorer.identity()["weights"]
    scores = scorer.score([("what pressure", "the press runs at 140 bar .")])
    weights._hub_revision.cache_clear()
    return [before, scorer.identity()["weights"], scores]

def refused(name):
    try:
        weights.find(name).digest()
    except ModelError as error:
        return str(error)

time.sleep = lambda seconds: None  # the library's waits between its attempts
first, none = look(), refused("lab/none")
urllib.request.urlopen(sys.argv[1] + "/move").read()
second = look()
urllib.request.urlopen(sys.argv[1] + "/stop").read()
print(json.dumps([first, second, look(), none, refused("lab/other")]))
"""


@contextmanager
def hub(folder):
    """Serve `folder` as the model lab/tiny; /move makes a new commit of it, /stop ends the service."""
    state = {"commit": FIRST, "up": True}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802 - the library's name
            path = self.path.partition("?")[0]
            if path == "/move":
                state["commit"] = SECOND
            elif path == "/stop":
                state["up"] = False
            if path in ("/move", "/stop"):
                self._send(200, b"")
            elif not state["up"]:
                self._send(503, b"")
            elif path in ("/api/models/lab/tiny", f"/api/models/lab/tiny/revision/{state['commit']}"):
                self._send(200, json.dumps({"id": "lab/tiny", "sha": state["commit"], "siblings": []}).encode())
            elif path.startswith("/lab/tiny/resolve/"):
                self._file(*path.removeprefix("/lab/tiny/resolve/").split("/", 1))
            else:
                kind = "EntryNotFound" if "/lab/tiny" in path else "RepoNotFound"
                self._send(404, b"", {"X-Error-Code": kind})

        do_HEAD = do_GET  # noqa: N815 - the library's name

        def _file(self, revision, name):
            commit, file = state["commit"] if revision == "main" else revision, folder / name
            if not file.is_file():
                return self._send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            etag = f'"{name}-{commit}"'
            return self._send(200, file.read_bytes(), {"X-Repo-Commit": commit, "ETag": etag})

        def _send(self, status, content, headers=()):
            self.send_response(status)
            for key, value in {**dict(headers), "Content-Length": str(len(content))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def seen(tiny_cross_encoder, tmp_path_factory):
    home = tmp_path_factory.mktemp("hub")
    with hub(tiny_cross_encoder) as url:
        settings = {"HF_ENDPOINT": url, "HF_HOME": str(home / "hf"), "RAG_LAB_HOME": str(home), "HF_HUB_OFFLINE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", IDENTITIES, url],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_identity_before_the_download_is_the_one_after(seen):
    before, after, _ = seen[0]
    assert before == after == f"hub:lab/tiny@{FIRST}"


def test_what_was_downloaded_is_what_is_used_when_the_hub_has_moved_on_or_is_down(seen):
    assert seen[1] == seen[2] == seen[0]


def test_what_the_hub_cannot_say_is_one_sentence(seen):
    unknown, unreachable = seen[3:]
    assert "Cannot load 'lab/none' from the model hub" in unknown
    assert "there is none of this name, or HF_TOKEN may not read it" in unknown
    assert "Cannot load 'lab/other' from the model hub" in unreachable
    assert "it needs the network or an earlier download" in unreachable
    assert not any("\n" in sentence for sentence in seen[3:])
