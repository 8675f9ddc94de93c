"""A Qdrant server on loopback: those paths of its REST interface that the workbench uses, before its Python engine.

The engine is that of Qdrant's Python client: requests, filters and replies are Qdrant's own, the graph is missing.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from qdrant_client import QdrantClient, models


@dataclass
class QdrantServer:
    """A running server. `keys` holds the API key of each request; `broken` makes every request fail."""

    url: str = ""
    keys: list[str | None] = field(default_factory=list)
    upserts: int = 0
    broken: bool = False
    engine: QdrantClient = field(default_factory=lambda: QdrantClient(":memory:"))

    def answer(self, method: str, path: str, body: Any) -> Any:
        """Return the `result` of a request."""
        name, _, rest = path.removeprefix("/collections/").partition("/")
        match method, rest:
            case "GET", "exists":
                return {"exists": self.engine.collection_exists(name)}
            case "PUT", "":
                request = models.CreateCollection.model_validate(body)
                return self.engine.create_collection(name, vectors_config=request.vectors)
            case "DELETE", "":
                return self.engine.delete_collection(name)
            case "POST", "points/count":
                return self.engine.count(name, exact=True).model_dump()
            case "PUT", "index":
                return {"operation_id": 0, "status": "completed"}
            case "PUT", "points":
                self.upserts += 1
                batch = models.PointsBatch.model_validate(body).batch
                return self.engine.upsert(name, points=batch).model_dump()
            case "POST", "points/query/batch":
                request = models.QueryRequestBatch.model_validate(body)
                return [reply.model_dump() for reply in self.engine.query_batch_points(name, request.searches)]
        raise NotImplementedError(f"{method} {path}")


def _handler(server: QdrantServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
            server.keys.append(self.headers.get("api-key"))
            status, reply = 200, {"status": "ok", "time": 0.0}
            if server.broken:
                status, reply = 503, {"status": {"error": "out of disk"}, "time": 0.0}
            elif self.path == "/":
                reply = {"title": "qdrant", "version": "1.20.0"}
            else:
                reply["result"] = server.answer(self.command, re.sub(r"\?.*", "", self.path), body)
            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = _reply  # noqa: N815 - the library's names

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@contextmanager
def qdrant_server() -> Iterator[QdrantServer]:
    """Run a server."""
    server = QdrantServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
