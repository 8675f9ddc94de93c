"""Which words are searched: the user's, or the model's rewrite where a measured guard lets it through.

The guard refuses a rewrite that has drifted: one whose embedding is far from the question's, or that has lost a code,
a number or a part name of the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.models.protocols import Embedder
from rag_lab.records import Question, Trace
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Outcome

REWRITE = "rewrite"
_CODE = re.compile(r"[\w./-]*\d[\w./-]*")


@dataclass(frozen=True)
class OwnWords:
    """Search the user's own wording."""

    name: ClassVar[str] = REWRITE
    reads: ClassVar[tuple[str, ...]] = ("question.text",)
    writes: ClassVar[tuple[str, ...]] = ("search_query",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """Nothing but the version."""
        return {"version": 1, "rewrite": "none"}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Copy the question's text."""
        return [Outcome({"search_query": trace.question.text}, seconds=0.0) for trace in traces]


@dataclass(frozen=True)
class GuardedRewrite:
    """Search the model's rewrite, unless it has drifted from the question: then fall back to the user's wording."""

    embedder: Embedder
    min_similarity: float

    name: ClassVar[str] = REWRITE
    reads: ClassVar[tuple[str, ...]] = ("question.text", "question.history", "proposed_query")
    writes: ClassVar[tuple[str, ...]] = ("search_query",)
    batch_size: ClassVar[int] = 256
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Embedding model and threshold."""
        return {"version": 1, "embedder": self.embedder.identity(), "min_similarity": self.min_similarity}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Accept or refuse each rewrite."""
        proposed = [trace for trace in traces if trace.proposed_query]
        similarity = dict(zip(map(id, proposed), self._similarities(proposed), strict=True))
        return [self._decide(trace, similarity.get(id(trace))) for trace in traces]

    def _similarities(self, traces: Sequence[Trace]) -> list[float]:
        """Return the cosine of each rewrite with its question, in the context of the history where there is one."""
        if not traces:
            return []
        rewrites = self.embedder.embed_queries([trace.proposed_query or "" for trace in traces])
        alone = self.embedder.embed_queries([trace.question.text for trace in traces])
        within = self.embedder.embed_queries([_with_history(trace.question) for trace in traces])
        return [float(max(r @ a, r @ w)) for r, a, w in zip(rewrites, alone, within, strict=True)]

    def _decide(self, trace: Trace, similarity: float | None) -> Outcome:
        question = trace.question.text
        own = {"search_query": question}
        if similarity is None or not trace.proposed_query:
            return Outcome(own, "fallback", "no rewrite to search")
        lost = sorted(_codes(question) - _codes(trace.proposed_query))
        if lost:
            return Outcome(own, "fallback", f"rewrite refused: it lost {', '.join(lost)}")
        if similarity < self.min_similarity:
            reason = f"rewrite refused: cosine {similarity:.2f} with the question is below {self.min_similarity:.2f}"
            return Outcome(own, "fallback", reason)
        return Outcome({"search_query": trace.proposed_query}, reason=f"cosine {similarity:.2f} with the question")


def _with_history(question: Question) -> str:
    return " ".join([*(turn.content for turn in question.history), question.text])


def _codes(text: str) -> set[str]:
    return {code.strip("./-").lower() for code in _CODE.findall(text)}


def own_words(_: Parts) -> OwnWords:
    """Return the stage that searches the user's wording."""
    return OwnWords()


def guarded(parts: Parts) -> GuardedRewrite:
    """Return the stage that searches what was proposed, unless it has drifted."""
    return GuardedRewrite(parts.embedder, parts.query.min_similarity)
