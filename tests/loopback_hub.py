"""A model hub on loopback that serves folders of this machine, each at the commit that it has at the moment."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FIRST, SECOND = "1" * 40, "2" * 40


@contextmanager
def loopback_hub(models):
    """Serve `models`, folders by name as `lab/tiny`; /move makes a new commit of each, /stop ends the service."""
    state = {"commit": FIRST, "up": True}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802 - the library's name
            path = self.path.partition("?")[0]
            name = next((name for name in models if f"/{name}" in path), None)
            if path == "/move":
                state["commit"] = SECOND
            elif path == "/stop":
                state["up"] = False
            if path in ("/move", "/stop"):
                self._send(200, b"")
            elif not state["up"]:
                self._send(503, b"")
            elif name is None:
                self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
            elif path in (f"/api/models/{name}", f"/api/models/{name}/revision/{state['commit']}"):
                self._send(200, json.dumps({"id": name, "sha": state["commit"], "siblings": []}).encode())
            elif path.startswith(f"/{name}/resolve/"):
                self._file(models[name], *path.removeprefix(f"/{name}/resolve/").split("/", 1))
            else:
                self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

        do_HEAD = do_GET  # noqa: N815 - the library's name

        def _file(self, folder, revision, name):
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
