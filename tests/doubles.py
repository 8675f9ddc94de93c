"""What tests need of a corpus, a judge and an embedder, without one: replies and pages that the test writes."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from rag_lab.access import access_label
from rag_lab.corpus.chunks import Contexts
from rag_lab.models.protocols import ChatReply, ChatRequest, Vectors
from rag_lab.records import Chunk, Hit
from rag_lab.stages.stage import Outcome

TEXTS = {
    "press#p1": "The press runs at 140 bar. Its ram guides take grease NLGI 2 every 500 hours.",
    "oven#p1": "The oven cures at 180 degrees. Its filter is changed every month by maintenance.",
    "oven#p2": "Alarm A7 of the oven means that the burner is locked out. " * 30,
    "log#0-50": "Night shift: oven tripped twice, burner reset.",
}


@dataclass
class Corpus:
    """The part of `CorpusIndex` that stages use; each parent is one child, but oven#p2, whose child is its middle."""

    digest: str = "corpus"
    vectors_identity: dict = field(default_factory=dict)
    searched: list = field(default_factory=list)
    truncation: None = None  # of an embedding model that does not say how much it reads

    @property
    def chunks(self):
        return self

    def parent(self, parent_id):
        text = TEXTS[parent_id]
        source, _, page = parent_id.partition("#p")
        return Chunk(parent_id, parent_id, f"{source}.pdf", int(page) if page else None, 0, len(text), text)

    def child(self, chunk_id):
        parent = self.parent(chunk_id.rpartition("/")[0])
        middle = len(parent.text) // 2 if parent.parent_id == "oven#p2" else 0
        text = parent.text[middle : middle + 60]
        return Chunk(chunk_id, parent.parent_id, parent.source, parent.page, middle, middle + len(text), text)

    contexts = Contexts()

    def searched_texts(self, children):
        return [child.text for child in children]

    labels = frozenset({access_label("", ())})
    manifest = SimpleNamespace(page_starts={}, corpora=())

    def text(self, hit):
        return self.parent(hit.parent_id).text[hit.start : hit.end]

    def search(self, vectors, k, allowed=None, level="parent", step="dense"):
        self.searched.append(len(vectors))
        return [hits(*list(TEXTS)[:k], step=step) for _ in vectors]

    def search_terms(self, name, analyzer, texts, k, allowed=None, level="parent", units="child"):
        self.searched.append(len(texts))
        return [hits(*list(TEXTS)[:k], step=name) for _ in texts]


def hits(*parent_ids, step="dense"):
    """Ranked hits of these parents, with scores 1, 1/2, 1/3, ..."""
    corpus = Corpus()
    found = []
    for rank, parent_id in enumerate(parent_ids, start=1):
        parent = corpus.parent(parent_id)
        found.append(
            Hit(
                parent_id,
                f"{parent_id}/0",
                parent.source,
                parent.page,
                parent.start,
                parent.end,
                1 / rank,
                {step: 1 / rank},
            )
        )
    return found


@dataclass
class Shout:
    """Upper-cases the question; counts how many traces it was run on."""

    version: int = 1
    batch_size: int = 2
    costly: bool = True
    name: str = "shout"
    reads: tuple = ("question.text",)
    writes: tuple = ("search_query",)
    seen: list = field(default_factory=list)
    fail_at: str = ""
    transient: str = ""

    def identity(self):
        return {"version": self.version}

    def run(self, traces):
        if any(trace.question.text == self.fail_at for trace in traces):
            raise RuntimeError("killed")
        self.seen += [trace.question.text for trace in traces]
        return [
            Outcome({"search_query": t.question.text.upper()}, lasting=t.question.text != self.transient)
            for t in traces
        ]


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
