"""Servers on loopback that speak the protocols of Gemini, OpenAI, Ollama and rerankers, with scripted replies.

with openai_server([Scripted(status=429, headers={"Retry-After": "0"}), "Paris."]) as server:
    model = chat_model(f"openai:tiny?base_url={server.url}")
"""

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rag_lab.models.truncation import fewest_tokens
from rag_lab.testing.doubles import HashEmbedder, OverlapScorer

Json = dict[str, Any]
_LEAST_READ = 7  # tokens of a prompt
_NOTHING_MORE = {"content": "", "thinking": ""}  # the last line of a stream of Ollama's tells its counts
_OLLAMA_WINDOW = 4096  # where a request asks for none
_OLLAMA_DETAILS = {"family": "tiny", "format": "gguf", "parameter_size": "1.2M", "quantization_level": "Q4_K_M"}


@dataclass(frozen=True)
class Scripted:
    """One answer of a server. `raw` is sent as it is, in place of the protocol's JSON; `endless`, again and again."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: str | bytes | None = None
    endless: bool = False
    dies_after: int | None = None  # bytes of the body, after which the connection breaks
    delay_s: float = 0.0
    thinking: str = ""
    finish: str = "stop"
    details: Sequence[Json] = ()  # of a Gemini error, such as RetryInfo
    window: int | None = None  # tokens of a prompt that the server reads, and reports; the rest it cuts in silence


Render = Callable[[str, Json, Scripted], Json | list[Json] | str]
Script = Sequence[Scripted | str] | Callable[[Json], Scripted | str]


@dataclass
class ModelServer:
    """A running server. `bodies`, `paths` and `headers` hold what was asked; after a list's end it answers `ok`.

    What only looks at the server (a GET, a path of `descriptions`) takes nothing from the script: `looks` holds its
    paths, and `seen` says with what status, and how late, it is answered.
    """

    script: Script
    url: str = ""
    descriptions: Collection[str] = ()
    seen: Scripted = Scripted()
    looks: list[str] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, headers: dict[str, str], body: Json | None) -> Scripted:
        """Record a request, without a body where it is a GET, and return what is answered to it."""
        with self._lock:
            if body is None or path in self.descriptions:
                self.looks.append(path)
                return self.seen
            position = len(self.bodies)
            self.bodies.append(body)
            self.paths.append(path)
            self.headers.append(headers)
        if callable(self.script):
            found = self.script(body)
        else:
            found = self.script[position] if position < len(self.script) else "ok"
        return Scripted(found) if isinstance(found, str) else found


def openai_server(script: Script = ()) -> AbstractContextManager[ModelServer]:
    """Serve `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`; `url` is what `base_url` takes."""
    return running_server(script, _openai_body, "/v1")


def gemini_server(script: Script = ()) -> AbstractContextManager[ModelServer]:
    """Serve `generateContent`, `embedContent` and `batchEmbedContents` (vectors of `HashEmbedder`)."""
    return running_server(script, _gemini_body)


@contextmanager
def running_server(
    script: Script, render: Render, suffix: str = "", descriptions: Collection[str] = ()
) -> Iterator[ModelServer]:
    """Serve what `render` makes of a path, the body that was asked and the script's answer; a text goes as it is."""
    state = ModelServer(script, descriptions=descriptions)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or a body waits 40 ms for the client to acknowledge its headers

        def do_GET(self) -> None:
            self._answer({}, state.answer(self.path, dict(self.headers.items()), None))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(body, state.answer(self.path, dict(self.headers.items()), body))

        def _answer(self, body: Json, reply: Scripted) -> None:
            time.sleep(reply.delay_s)
            found = render(self.path, body, reply) if reply.raw is None else reply.raw
            text = found if isinstance(found, str | bytes) else json.dumps(found)
            content = text.encode() if isinstance(text, str) else text
            self.close_connection = self.close_connection or reply.endless or reply.dies_after is not None
            try:
                self.send_response(reply.status)
                stream = "application/x-ndjson" if self.path.startswith("/api/") else "text/event-stream"
                kind = stream if reply.raw is None and text is found else "application/json"
                for name, value in {"Content-Type": kind, **reply.headers}.items():
                    self.send_header(name, value)
                if not reply.endless:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: reply.dies_after])
                while reply.endless:
                    self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client's time-out came first

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the test looks at `paths`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}{suffix}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def _openai_body(path: str, body: Json, reply: Scripted) -> Json | str:
    if reply.status >= 400:
        return {"error": {"message": reply.text or "scripted failure", "type": "scripted", "code": None}}
    if path.endswith("/models"):
        return {"object": "list", "data": [{"id": "tiny", "object": "model"}]}
    if path.endswith("/embeddings"):
        rows = hashed_rows(body["input"], body.get("dimensions", 16))
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
        usage = {"prompt_tokens": 7, "total_tokens": 7}
        return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    n_read = _read([str(message.get("content") or "") for message in body.get("messages", [])], reply)
    known = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": body.get("model", "")}
    usage = {"prompt_tokens": n_read, "completion_tokens": 3, "total_tokens": n_read + 3}
    if body.get("stream"):
        deltas = [message | {"content": ""}, *({"content": piece} for piece in re.findall(r"(?s).{1,5}", reply.text))]
        events = [known | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        last = known | {"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]}
        sent = [*map(json.dumps, [*events, last, known | {"choices": [], "usage": usage}]), "[DONE]"]
        return "".join(f"data: {event}\n\n" for event in sent)
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return known | {"choices": [choice], "usage": usage}


def _gemini_body(path: str, body: Json, reply: Scripted) -> Json | str:
    if reply.status >= 400:
        error = {"code": reply.status, "message": reply.text or "scripted failure", "details": list(reply.details)}
        return {"error": {**error, "status": "SCRIPTED"}}
    if not body:
        return {"name": path.rpartition("/")[2]}
    if path.partition("?")[0].endswith("mbedContents") or ":embedContent" in path:
        asked = body.get("requests") or [body]
        rows = [
            {"values": row}
            for row in hashed_rows(["".join(p["text"] for p in one["content"]["parts"]) for one in asked])
        ]
        return {"embeddings": rows} if "requests" in body else {"embedding": rows[0]}
    texts = [part.get("text", "") for content in body.get("contents", []) for part in content["parts"]]
    n_read = _read(texts, reply)
    parts: list[Json] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    parts += [{"text": reply.text}] if reply.text else []
    finish = {"stop": "STOP", "length": "MAX_TOKENS"}.get(reply.finish, reply.finish.upper())
    usage = {"promptTokenCount": n_read, "candidatesTokenCount": 3, "totalTokenCount": n_read + 3}
    if ":streamGenerateContent" in path:
        contents = [{"role": "model", "parts": [{"text": piece}]} for piece in re.findall(r"(?s).{1,5}", reply.text)]
        events: list[Json] = [{"candidates": [{"content": one, "index": 0}]} for one in contents]
        events[-1]["candidates"][0]["finishReason"] = finish
        events[-1]["usageMetadata"] = usage
        return "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage}


def _read(texts: Sequence[str], reply: Scripted) -> int:
    """Return how many tokens a server reads of these texts: words, seven at least, within its window."""
    n = max(_LEAST_READ, sum(map(fewest_tokens, texts)))
    return n if reply.window is None else min(n, reply.window)


def hashed_rows(texts: Sequence[str], dim: int = 16) -> list[list[float]]:
    """Return vectors of `HashEmbedder`, none of length one, as a server may give them."""
    return [[3 * float(value) for value in row] for row in HashEmbedder(dim).embed_documents(texts)]


def rerank_server(
    model: str = "tiny", script: Script = (), *, most_tokens: int = 512
) -> AbstractContextManager[ModelServer]:
    """Serve `/rerank` (also below `/v1` and `/v2`), `/tokenize`, `/info` and `/v1/models`."""

    def render(path: str, body: Json, reply: Scripted) -> Json | list[Json] | str:
        if reply.status >= 400:
            return {"error": reply.text or "scripted failure", "error_type": "scripted"}
        if path == "/info":
            return {"model_id": model, "max_input_length": most_tokens}
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": model, "max_model_len": most_tokens}]}
        if path == "/tokenize":
            if "prompt" in body:
                return {"count": len(body["prompt"].split())}
            return [[{"text": word} for word in text.split()] for text in body["inputs"]]  # type: ignore[misc]
        if not body:  # a GET, which only looks whether something is there
            return {}
        if "texts" in body:
            return [{"index": place, "score": score} for place, score in _ranked(body, body["texts"], most_tokens)]
        found = _ranked(body, body["documents"], most_tokens)
        return {"id": "1", "results": [{"index": place, "relevance_score": score} for place, score in found]}

    return running_server(script, render, descriptions=("/tokenize",))


def _ranked(body: Json, passages: list[str], most_tokens: int) -> list[tuple[int, float]]:
    """Return the places of the passages with their scores, the best first."""
    n_question = len(body["query"].split())
    cut = body.get("truncate_prompt_tokens") or (most_tokens if body.get("truncate") else most_tokens + n_question)
    most = body.get("max_tokens_per_doc", cut - n_question)
    read = [" ".join(passage.split()[:most]) for passage in passages]
    scores = OverlapScorer().score([(body["query"], passage) for passage in read])
    return sorted(enumerate(scores), key=lambda found: -found[1])[: body.get("top_n") or None]


def ollama_server(
    script: Script = (),
    *,
    models: Sequence[str] = ("tiny:latest",),
    capabilities: Sequence[str] = ("completion", "thinking", "vision", "embedding"),
    context_tokens: int = 32_768,
) -> AbstractContextManager[ModelServer]:
    """Serve `/api/chat`, `/api/embed`, `/api/tags`, `/api/show` and `/api/pull`, which adds to the models.

    A token is a word. As Ollama does, it reads half a window (`num_ctx`) of a prompt that is longer than that, without
    a word, writes at most `num_predict` of thought and reply together, and goes on behind the thought of an assistant's
    turn that stands last.
    """
    pulled = list(models)

    def render(path: str, body: Json, reply: Scripted) -> Json | str:
        if reply.status >= 400:
            return {"error": reply.text or "scripted failure"}
        if path == "/api/tags":
            return {"models": [_listed(name) for name in pulled]}
        if path == "/api/pull":
            pulled.append(body["model"])
            digest = _listed(body["model"])["digest"]
            step = {"status": f"pulling {digest[:12]}", "digest": f"sha256:{digest}", "total": 1_234_567}
            steps = [{"status": "pulling manifest"}, *(step | {"completed": n} for n in (600_000, 1_234_567))]
            return "\n".join(map(json.dumps, [*steps, {"status": "success"}])) + "\n"
        if path == "/api/show":
            info = {"general.architecture": "tiny", "tiny.context_length": context_tokens}
            return {"model_info": info, "capabilities": list(capabilities), "details": _OLLAMA_DETAILS}
        if path != "/api/embed":
            return _chat(body, reply)
        window = (body.get("options") or {}).get("num_ctx", _OLLAMA_WINDOW)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        read = [" ".join(text.split()[:window]) for text in texts]
        rows, n_read = hashed_rows(read, body.get("dimensions", 16)), sum(len(text.split()) for text in read)
        return {"model": body["model"], "embeddings": rows, "prompt_eval_count": n_read}

    return running_server(script, render, descriptions=("/api/show", "/api/pull"))


def _listed(name: str) -> Json:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {"name": name, "model": name, "digest": digest, "size": 1_234_567, "details": _OLLAMA_DETAILS}


def _chat(body: Json, reply: Scripted) -> Json | str:
    options, last = body.get("options") or {}, body["messages"][-1]
    sent = sum(len(f"{each.get('content', '')} {each.get('thinking', '')}".split()) for each in body["messages"])
    left, window = options.get("num_predict", 128), options.get("num_ctx", _OLLAMA_WINDOW)
    thinks = bool(body.get("think")) and last["role"] != "assistant"
    thinking, left = _first(reply.thinking if thinks else "", left)
    text, after = _first(reply.text, left)
    is_cut = after == 0 and (thinking, text) != (reply.thinking if thinks else "", reply.text)
    message = {"role": "assistant", "content": text, **({"thinking": thinking} if thinking else {})}
    known = {"model": body["model"], "created_at": "2026-11-27T12:00:00Z"}
    whole = known | {
        "message": message,
        "done": True,
        "done_reason": "length" if is_cut else reply.finish,
        "prompt_eval_count": sent if sent <= window else window // 2 + 2,
        "eval_count": len(f"{thinking} {text}".split()),
    }
    if not body.get("stream"):
        return whole
    pieces = [{"content": "", "thinking": piece} for piece in re.findall(r"(?s).{1,5}", thinking)]
    pieces += [{"content": piece} for piece in re.findall(r"(?s).{1,5}", text)]
    lines = [known | {"message": {"role": "assistant"} | piece, "done": False} for piece in pieces]
    return "".join(f"{json.dumps(line)}\n" for line in [*lines, whole | {"message": message | _NOTHING_MORE}])


def _first(text: str, n: int) -> tuple[str, int]:
    """Return the first `n` words of a text, and how many may follow."""
    words = text.split()
    return (text, n - len(words)) if len(words) <= n else (" ".join(words[:n]), 0)
