"""A judge and an embedder whose replies the test writes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rag_lab.models.protocols import ChatReply, ChatRequest, Vectors

Answering = Callable[[ChatRequest], ChatReply | str]


class ScriptedJudge:
    """Answers each request by a function of it; keeps the requests and the sizes of the batches they came in."""

    constrains_json = True

    def __init__(self, answer: Answering, name: str = "judge-a", context_tokens: int = 32_000) -> None:
        self.context_tokens = context_tokens
        self.requests: list[ChatRequest] = []
        self.batches: list[int] = []
        self._answer = answer
        self._name = name

    def identity(self) -> Mapping[str, Any]:
        return {"provider": "scripted", "name": self._name}

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        self.requests += requests
        self.batches.append(len(requests))
        replies = [self._answer(request) for request in requests]
        return [reply if isinstance(reply, ChatReply) else ChatReply(reply, seconds=0.5) for reply in replies]

    def count_tokens(self, text: str) -> int:
        return len(text) // 4


class HashEmbedder:
    """Unit vectors that depend on the text alone."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def identity(self) -> Mapping[str, Any]:
        return {"provider": "scripted", "name": "hash"}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        return np.stack([_vector(text) for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)


def good_reply(request: ChatRequest, statements: Sequence[str] = ("a", "b", "c", "d")) -> str:
    """Answer any of RAGAs' prompts sensibly: three of four statements hold, one reference statement is missed."""
    fields = set((request.json_schema or {}).get("properties", {}))
    if fields == {"statements"} and "$defs" not in (request.json_schema or {}):
        return json.dumps({"statements": list(statements)})
    if fields == {"statements"}:
        verdicts = [{"statement": s, "reason": "r", "verdict": int(s != "d")} for s in statements]
        return json.dumps({"statements": verdicts})
    if fields == {"TP", "FP", "FN"}:
        said = [{"statement": s, "reason": "r"} for s in statements]
        return json.dumps({"TP": said[:3], "FP": said[3:], "FN": [{"statement": "e", "reason": "r"}]})
    if fields == {"question", "noncommittal"}:
        return json.dumps({"question": f"How hot? {request.seed}", "noncommittal": 0})
    if fields == {"classifications"}:
        marks = [{"statement": s, "reason": "r", "attributed": int(s != "d")} for s in statements]
        return json.dumps({"classifications": marks})
    if fields == {"claims"}:
        return json.dumps({"claims": list(statements)})
    if fields == {"entities"}:  # more of them in a context than in a reference
        context = any("heated" in message.content for message in request.messages)
        return json.dumps({"entities": ["oven", *(["180 degrees"] if context else ["timer"])]})
    if fields == {"rating"} and (request.json_schema or {}).get("title") == "AnswerAccuracyOutput":
        return json.dumps({"rating": 2})
    return json.dumps({"rating": 1} if fields == {"rating"} else {"reason": "r", "verdict": 1})


def _vector(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    vector = np.random.default_rng(seed).random(8).astype(np.float32)
    return vector / np.linalg.norm(vector)
