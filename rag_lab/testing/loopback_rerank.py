"""A server on loopback that reranks as TEI, vLLM, Cohere and Jina do; a token is a word there.

    with rerank_server("tiny", most_tokens=64) as server:
        scorer = cross_encoder(f"vllm:tiny?base_url={server.url}")

A passage is cut where the request says so (TEI's `truncate`, vLLM's `truncate_prompt_tokens`, Cohere's
`max_tokens_per_doc`), without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rag_lab.testing.loopback_servers import Json, ModelServer, Script, Scripted, running_server
from rag_lab.testing.models import OverlapScorer


@contextmanager
def rerank_server(model: str = "tiny", script: Script = (), *, most_tokens: int = 512) -> Iterator[ModelServer]:
    """Serve `/rerank` (also below `/v1` and `/v2`), `/tokenize`, `/info` and `/v1/models`."""

    def render(path: str, body: Json, reply: Scripted) -> Json | list[Json] | str:
        if reply.status >= 400:
            return {"error": reply.text or "scripted failure", "error_type": "scripted"}
        if path == "/info":
            return {"model_id": model, "max_input_length": most_tokens}
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": model, "max_model_len": most_tokens}]}
        if path == "/tokenize":
            return _tokenized(body)
        if not body:  # a GET, which only looks whether something is there
            return {}
        if "texts" in body:
            return [{"index": place, "score": score} for place, score in _ranked(body, body["texts"], most_tokens)]
        found = _ranked(body, body["documents"], most_tokens)
        return {"id": "1", "results": [{"index": place, "relevance_score": score} for place, score in found]}

    with running_server(script, render, descriptions=("/tokenize",)) as server:
        yield server


def _tokenized(body: Json) -> Json | list[Json]:
    if "prompt" in body:
        return {"count": len(body["prompt"].split())}
    return [[{"text": word} for word in text.split()] for text in body["inputs"]]  # type: ignore[misc]


def _ranked(body: Json, passages: list[str], most_tokens: int) -> list[tuple[int, float]]:
    """Return the places of the passages with their scores, the best first."""
    n_question = len(body["query"].split())
    cut = body.get("truncate_prompt_tokens") or (most_tokens if body.get("truncate") else most_tokens + n_question)
    most = body.get("max_tokens_per_doc", cut - n_question)
    read = [" ".join(passage.split()[:most]) for passage in passages]
    scores = OverlapScorer().score([(body["query"], passage) for passage in read])
    return sorted(enumerate(scores), key=lambda found: -found[1])[: body.get("top_n") or None]
