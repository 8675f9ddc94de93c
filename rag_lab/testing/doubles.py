"""Models without weights (a scripted chat, an embedder and a scorer that compare words), and traces on a small corpus.

The corpus is indexed, and the traces on it have every field filled: contracts run on them.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rag_lab.access import allowed_labels
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatReply, ChatRequest, Vectors, unit_vectors
from rag_lab.records import Answer, Citation, Evidence, Passage, Question, StageRecord, Trace
from rag_lab.stores.config import StoreConfig

Reply = str | ChatReply
_WORD = re.compile(r"\w+")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@dataclass
class ScriptedChat:
    """Replies from a list, in order, or from a function of the request. `requests` holds what was asked.

    A string becomes a reply whose tokens are its words. A list that runs out is a `ModelError`.
    """

    script: Sequence[Reply] | Callable[[ChatRequest], Reply]
    name: str = "script"
    constrains_json: bool = False
    context_tokens: int = 4096
    requests: list[ChatRequest] = field(default_factory=list)

    def identity(self) -> Mapping[str, Any]:
        """Return the name: two scripts that must not share remembered results need two names."""
        return {"provider": "scripted", "name": self.name}

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return the next reply of the script for each request."""
        replies = []
        for request in requests:
            position = len(self.requests)
            self.requests.append(request)
            if callable(self.script):
                reply = self.script(request)
            elif position < len(self.script):
                reply = self.script[position]
            else:
                raise ModelError(f"The script has {len(self.script)} replies, and one more was asked for.")
            if isinstance(reply, str):
                tokens_in = sum(self.count_tokens(message.content) for message in request.messages)
                reply = ChatReply(text=reply, tokens_in=tokens_in, tokens_out=self.count_tokens(reply))
            replies.append(reply)
        return replies

    def count_tokens(self, text: str) -> int:
        """Return the number of words."""
        return len(_words(text))


@dataclass
class HashEmbedder:
    """Unit vectors of hashed words: texts that share words are near, the same on every machine.

    `documents` and `queries` hold what was embedded, in order.
    """

    dim: int = 256
    documents: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    def identity(self) -> Mapping[str, Any]:
        """Return the size of the vectors."""
        return {"provider": "hash", "dim": self.dim}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors; a text without words gets the last axis."""
        self.documents += texts
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors; see `embed_documents`."""
        self.queries += texts
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _words(text):
                row[int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big") % self.dim] += 1
            if not row.any():
                row[-1] = 1
        return unit_vectors(rows)


@dataclass
class OverlapScorer:
    """The share of the question's distinct words that stand in the passage; 0 for a question without words."""

    pairs: list[tuple[str, str]] = field(default_factory=list)

    def identity(self) -> Mapping[str, Any]:
        """Return the provider alone: there is nothing to set."""
        return {"provider": "overlap"}

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score in [0, 1] for each (question, passage), in order."""
        self.pairs += pairs
        words = [(set(_words(question)), set(_words(passage))) for question, passage in pairs]
        return [len(asked & read) / len(asked) if asked else 0.0 for asked, read in words]


WITHHELD = "salaries.md"  # the file that only askers with the permission `office` may see
FILES = {
    "press.md": "# Press\n\nThe press runs at 140 bar. Its ram guides take grease NLGI 2 every 500 hours.\n",
    "oven.md": "# Oven\n\nThe oven cures at 180 degrees. Its filter is changed every month by maintenance.\n\n"
    "## Alarms\n\nAlarm A7 means that the burner of the oven is locked out, so the oven trips.\n",
    "log.md": "Night shift: the oven tripped twice, the burner was reset.\n",
    WITHHELD: "The salary of the man at the oven is paid every month.\n",
}
QUESTIONS = ("Why does the oven trip?", "What is A7?", "Which grease do the ram guides of the press take?")
REPLY = json.dumps(
    {"class": "fuzzy", "rewritten": "oven trips", "hyde": True, "answer": "A7", "citations": [1], "phrasings": ["a"]}
)
_CORPUS = CorpusConfig(chunk_size=80, chunk_overlap=10)
_FOLDERS: list[TemporaryDirectory[str]] = []


def sample_chat() -> ScriptedChat:
    """Return a chat model that gives each of our prompts the reply it asks for."""
    return ScriptedChat(lambda request: REPLY)


@cache
def sample_index() -> CorpusIndex:
    """Return the index of `FILES`, searched by a `HashEmbedder`; it is gone when the process ends."""
    _FOLDERS.append(TemporaryDirectory(prefix="rag_lab_sample_"))
    home = Path(_FOLDERS[-1].name)
    (home / "corpus").mkdir()
    for name, text in FILES.items():
        (home / "corpus" / name).write_text(text, encoding="utf-8")
    (home / "attributes.yaml").write_text(f"- files: {WITHHELD}\n  permissions: [office]\n", encoding="utf-8")
    index = open_index(home / "corpus", _CORPUS, HashEmbedder(), home=home, store=StoreConfig(name="exact"))
    index.ensure_vectors()
    return index


def sample_question(text: str = QUESTIONS[0], **changes: Any) -> Question:
    """Return an answerable question with a reference and its evidence."""
    evidence = (Evidence("oven.md", quote="the burner of the oven is locked out"),)
    return Question(text, text, **({"answers": ("The burner is locked out.",), "evidence": evidence} | changes))


def sample_trace(text: str = QUESTIONS[0], may_see: tuple[str, ...] | None = None, **changes: Any) -> Trace:
    """Return a trace that went well, with every field filled, and nothing on it that its asker may not see."""
    index, question = sample_index(), sample_question(text, may_see=may_see)
    allowed = allowed_labels(index.chunks.labels, question)
    hits = {
        name: tuple(index.search(HashEmbedder().embed_queries([text]), 4, allowed, step=name)[0])
        for name in ("dense", "hyde")
    }
    hits |= {name: tuple(index.search_terms(name, "english", [text], 3, allowed)[0]) for name in ("bm25", "tfidf")}
    found = hits["dense"]
    passages = tuple(
        Passage(number, hit.parent_id, hit.source, hit.page, hit.start, hit.end, index.text(hit))
        for number, hit in enumerate(found[:2], start=1)
    )
    filled = Trace(
        replace(question, evidence=tuple(index.locate(item)[0] for item in question.evidence)),
        query_class="fuzzy",
        proposed_query="oven trips",
        hyde_suggested=False,
        search_query=text,
        phrasings=("oven stops", "cause of the oven's trip"),
        hyde_route="fuzzy",
        hypothetical="The oven trips when its burner is locked out.",
        hits=hits,
        base_hits=found,
        candidates=found,
        ranked=found,
        passages=passages,
        prompt="Answer from the passages.",
        raw_text=REPLY,
        answer=Answer("The burner is locked out.", (Citation(1, passages[0].source, None),)),
        stages=(StageRecord("context"), StageRecord("generate", seconds=1.0, tokens_in=9, tokens_out=5)),
    )
    return replace(filled, **changes)
