"""Servers on loopback that speak the protocols of Gemini and of OpenAI, with scripted replies and failures.

with openai_server([Scripted(status=429, headers={"Retry-After": "0"}), "Paris."]) as server:
    model = chat_model(f"openai:tiny?base_url={server.url}")
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rag_lab.testing.models import HashEmbedder

Json = dict[str, Any]


@dataclass(frozen=True)
class Scripted:
    """One answer of a server. `raw` is sent as it is, in place of the protocol's JSON; `endless`, again and again."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: str | bytes | None = None
    endless: bool = False
    delay_s: float = 0.0
    thinking: str = ""
    finish: str = "stop"
    details: Sequence[Json] = ()  # of a Gemini error, such as RetryInfo


Script = Sequence[Scripted | str] | Callable[[Json], Scripted | str]


@dataclass
class ModelServer:
    """A running server. `bodies`, `paths` and `headers` hold what was asked; after a list's end it answers `ok`."""

    script: Script
    url: str = ""
    bodies: list[Json] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, headers: dict[str, str], body: Json) -> Scripted:
        """Record a request and return what the script says to it."""
        with self._lock:
            position = len(self.bodies)
            self.bodies.append(body)
            self.paths.append(path)
            self.headers.append(headers)
        if callable(self.script):
            found = self.script(body)
        else:
            found = self.script[position] if position < len(self.script) else "ok"
        return Scripted(found) if isinstance(found, str) else found


@contextmanager
def openai_server(script: Script = ()) -> Iterator[ModelServer]:
    """Serve `/v1/chat/completions`; `url` is what `base_url` takes."""
    with _running(script, _openai_body, "/v1") as server:
        yield server


@contextmanager
def gemini_server(script: Script = ()) -> Iterator[ModelServer]:
    """Serve `generateContent`, `embedContent` and `batchEmbedContents` (vectors of `HashEmbedder`)."""
    with _running(script, _gemini_body, "") as server:
        yield server


@contextmanager
def _running(script: Script, render: Callable[[str, Json, Scripted], Json], suffix: str) -> Iterator[ModelServer]:
    state = ModelServer(script)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state, render))
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}{suffix}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def _handler(state: ModelServer, render: Callable[[str, Json, Scripted], Json]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or a body waits 40 ms for the client to acknowledge its headers

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = state.answer(self.path, dict(self.headers.items()), body)
            time.sleep(reply.delay_s)
            text = json.dumps(render(self.path, body, reply)) if reply.raw is None else reply.raw
            try:
                self._send(reply, text.encode() if isinstance(text, str) else text)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client's time-out came first

        def _send(self, reply: Scripted, content: bytes) -> None:
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            if reply.endless:
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            while reply.endless:
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the test looks at `paths`."""

    return Handler


def _openai_body(path: str, body: Json, reply: Scripted) -> Json:
    if reply.status >= 400:
        return {"error": {"message": reply.text or "scripted failure", "type": "scripted", "code": None}}
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def _gemini_body(path: str, body: Json, reply: Scripted) -> Json:
    if reply.status >= 400:
        error = {"code": reply.status, "message": reply.text or "scripted failure", "details": list(reply.details)}
        return {"error": {**error, "status": "SCRIPTED"}}
    if path.partition("?")[0].endswith("mbedContents") or ":embedContent" in path:
        return _embeddings(body)
    parts: list[Json] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    parts += [{"text": reply.text}] if reply.text else []
    finish = {"stop": "STOP", "length": "MAX_TOKENS"}.get(reply.finish, reply.finish.upper())
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
    }


def _embeddings(body: Json) -> Json:
    asked = body.get("requests") or [body]
    texts = ["".join(part["text"] for part in request["content"]["parts"]) for request in asked]
    rows = [{"values": [3 * float(value) for value in row]} for row in HashEmbedder(16).embed_documents(texts)]
    return {"embeddings": rows} if "requests" in body else {"embedding": rows[0]}
