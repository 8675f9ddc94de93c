"""Models behind servers on loopback that take a fixed time, so that two sides wait for the same."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_lab.testing.doubles import HashEmbedder

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from loopback_models import Json, ModelServer, Scripted, openai_server, rerank_server, running_server

DIMENSIONS = 384


@contextmanager
def chat_server(reply_s: float) -> Iterator[ModelServer]:
    """Serve a chat model that classifies, rewrites and imagines passages, each reply `reply_s` after it was asked."""

    def reply(body: Json) -> Scripted:
        asked = body["messages"][-1]["content"].rpartition("Question: ")[2].strip()
        text = f"According to the documentation, {asked.rstrip('?')} is described as follows: {asked}"
        if "response_format" in body or "rewritten" in body["messages"][0]["content"]:
            text = json.dumps({"class": "specific", "rewritten": f"{asked} details", "hyde": True})
        return Scripted(text, delay_s=reply_s)

    with openai_server(reply) as server:
        yield server


@contextmanager
def reranker(pair_s: float) -> Iterator[ModelServer]:
    """Serve a reranker that takes `pair_s` for each passage that it is given."""
    with rerank_server(script=lambda body: Scripted(delay_s=pair_s * len(body.get("documents", ())))) as server:
        yield server


@contextmanager
def embedding_server(text_s: float) -> Iterator[ModelServer]:
    """Serve vectors of hashed words as OpenAI (`/v1/embeddings`) and TEI (`/embed`) do, `text_s` for each text."""
    model = HashEmbedder(DIMENSIONS)

    def render(path: str, body: Json, reply: Scripted) -> Json | list[Json]:
        texts = body.get("input") or body.get("inputs") or []
        time.sleep(text_s * len(texts))
        rows = model.embed_documents(texts).tolist() if texts else []
        if path == "/embed":
            return rows
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
        n_read = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": n_read, "total_tokens": n_read}
        return {"object": "list", "data": data, "model": body.get("model", ""), "usage": usage}

    with running_server((), render) as server:
        yield server
