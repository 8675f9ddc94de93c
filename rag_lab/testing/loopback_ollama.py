"""A server on loopback that speaks Ollama's protocol, with scripted replies and failures; a token is a word there.

    with ollama_server(["Paris."]) as server:
        model = chat_model(f"ollama:tiny?base_url={server.url}")

As Ollama does, it reads half a window (`num_ctx`) of a prompt that is longer than that, without a word, writes at most
`num_predict` of thought and reply together, and goes on behind the thought of an assistant's turn that stands last.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rag_lab.testing.loopback_servers import Json, ModelServer, Script, Scripted, hashed_rows, running_server

_LOOKS = ("/api/show", "/api/pull")
_WINDOW = 4096  # where a request asks for none
_DETAILS = {"family": "tiny", "format": "gguf", "parameter_size": "1.2M", "quantization_level": "Q4_K_M"}


@contextmanager
def ollama_server(
    script: Script = (),
    *,
    models: Sequence[str] = ("tiny:latest",),
    capabilities: Sequence[str] = ("completion", "thinking", "vision", "embedding"),
    context_tokens: int = 32_768,
) -> Iterator[ModelServer]:
    """Serve `/api/chat`, `/api/embed`, `/api/tags`, `/api/show` and `/api/pull`, which adds to the models."""
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
            return {"model_info": info, "capabilities": list(capabilities), "details": _DETAILS}
        if path != "/api/embed":
            return _chat(body, reply)
        window = (body.get("options") or {}).get("num_ctx", _WINDOW)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        read = [" ".join(text.split()[:window]) for text in texts]
        rows, n_read = hashed_rows(read, body.get("dimensions", 16)), sum(len(text.split()) for text in read)
        return {"model": body["model"], "embeddings": rows, "prompt_eval_count": n_read}

    with running_server(script, render, descriptions=_LOOKS) as server:
        yield server


def _listed(name: str) -> Json:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {"name": name, "model": name, "digest": digest, "size": 1_234_567, "details": _DETAILS}


def _chat(body: Json, reply: Scripted) -> Json:
    options, last = body.get("options") or {}, body["messages"][-1]
    sent = sum(len(f"{each.get('content', '')} {each.get('thinking', '')}".split()) for each in body["messages"])
    left, window = options.get("num_predict", 128), options.get("num_ctx", _WINDOW)
    thinks = bool(body.get("think")) and last["role"] != "assistant"
    thinking, left = _first(reply.thinking if thinks else "", left)
    text, after = _first(reply.text, left)
    is_cut = after == 0 and (thinking, text) != (reply.thinking if thinks else "", reply.text)
    message = {"role": "assistant", "content": text, **({"thinking": thinking} if thinking else {})}
    return {
        "model": body["model"],
        "message": message,
        "done": True,
        "done_reason": "length" if is_cut else reply.finish,
        "prompt_eval_count": sent if sent <= window else window // 2 + 2,
        "eval_count": len(f"{thinking} {text}".split()),
    }


def _first(text: str, n: int) -> tuple[str, int]:
    """Return the first `n` words of a text, and how many may follow."""
    words = text.split()
    return (text, n - len(words)) if len(words) <= n else (" ".join(words[:n]), 0)
