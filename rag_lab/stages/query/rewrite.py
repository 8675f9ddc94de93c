"""Which words are searched: the user's, or the model's rewrite where a measured guard lets it through, or any.

The guard refuses a rewrite that has drifted: one whose embedding is far from the question's, or that has lost a code,
a number or a part name of the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_lab.models.limits.read_limit import unread_of_texts
from rag_lab.models.protocols import Embedder
from rag_lab.records import Trace
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Outcome

REWRITE = "rewrite"
_NOTHING = "no rewrite to search"
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
        return [_own(trace) for trace in traces]


@dataclass(frozen=True)
class GuardedRewrite:
    """Search the model's rewrite, unless it has drifted from the question: then fall back to the user's wording."""

    embedder: Embedder
    min_similarity: float

    name: ClassVar[str] = REWRITE
    reads: ClassVar[tuple[str, ...]] = ("question.text", "question.history", "remembered", "proposed_query")
    writes: ClassVar[tuple[str, ...]] = ("search_query",)
    batch_size: ClassVar[int] = 256
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Embedding model and threshold."""
        return {"version": 2, "embedder": self.embedder.identity(), "min_similarity": self.min_similarity}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Accept or refuse each rewrite."""
        proposed = [trace for trace in traces if trace.proposed_query]
        similarity = dict(zip(map(id, proposed), self._similarities(proposed), strict=True))
        unread = dict(zip(map(id, proposed), self._unread(proposed), strict=True))
        return [
            replace(self._decide(trace, similarity.get(id(trace))), truncated_tokens=unread.get(id(trace), 0))
            for trace in traces
        ]

    def _unread(self, traces: Sequence[Trace]) -> list[int]:
        """Return how many tokens of what is compared for each trace the embedding model never reads."""
        texts = [{t.proposed_query or "", t.question.text, in_context(t)} for t in traces]  # each is read once
        return [sum(unread_of_texts(self.embedder, [*some], "query")) for some in texts]

    def _similarities(self, traces: Sequence[Trace]) -> list[float]:
        """Return the cosine of each rewrite with its question, alone or after what is remembered."""
        if not traces:
            return []
        rewrites = self.embedder.embed_queries([trace.proposed_query or "" for trace in traces])
        alone = self.embedder.embed_queries([trace.question.text for trace in traces])
        within = self.embedder.embed_queries([in_context(trace) for trace in traces])
        return [float(max(r @ a, r @ w)) for r, a, w in zip(rewrites, alone, within, strict=True)]

    def _decide(self, trace: Trace, similarity: float | None) -> Outcome:
        question = trace.question.text
        own = {"search_query": question}
        if similarity is None or not trace.proposed_query:
            return Outcome(own, "fallback", _NOTHING)
        lost = sorted(_codes(question) - _codes(trace.proposed_query))
        if lost:
            return Outcome(own, "fallback", f"rewrite refused: it lost {', '.join(lost)}")
        if similarity < self.min_similarity:
            reason = f"rewrite refused: cosine {similarity:.2f} with the question is below {self.min_similarity:.2f}"
            return Outcome(own, "fallback", reason)
        return Outcome({"search_query": trace.proposed_query}, reason=f"cosine {similarity:.2f} with the question")


@dataclass(frozen=True)
class AnyRewrite:
    """Search the model's rewrite, wherever it has gone; without one, the user's wording."""

    name: ClassVar[str] = REWRITE
    reads: ClassVar[tuple[str, ...]] = ("question.text", "proposed_query")
    writes: ClassVar[tuple[str, ...]] = ("search_query",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """Nothing but the version."""
        return {"version": 1, "rewrite": "unguarded"}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Take each rewrite as it is."""
        return [self._take(trace) for trace in traces]

    def _take(self, trace: Trace) -> Outcome:
        if trace.proposed_query:
            return Outcome({"search_query": trace.proposed_query}, seconds=0.0)
        return Outcome({"search_query": trace.question.text}, "fallback", _NOTHING, seconds=0.0)


def in_context(trace: Trace) -> str:
    """Return what is remembered of the conversation and the question as one text."""
    said = trace.remembered
    return " ".join(filter(None, [said.summary, *(turn.content for turn in said.turns), trace.question.text]))


@dataclass(frozen=True)
class RewrittenFollowUps:
    """Search the rewrite of questions with a conversation as `rewriting` does, and others in the user's wording."""

    rewriting: GuardedRewrite | AnyRewrite

    name: ClassVar[str] = REWRITE
    writes: ClassVar[tuple[str, ...]] = ("search_query",)

    @property
    def reads(self) -> tuple[str, ...]:
        """What the rewriting reads, and the conversation."""
        return tuple(dict.fromkeys((*self.rewriting.reads, "question.history")))

    @property
    def batch_size(self) -> int:
        """That of the rewriting."""
        return self.rewriting.batch_size

    @property
    def costly(self) -> bool:
        """Whether the rewriting is."""
        return self.rewriting.costly

    def identity(self) -> Mapping[str, Any]:
        """The rewriting."""
        return {"version": 1, "follow_ups": dict(self.rewriting.identity())}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Rewrite those that follow something."""
        rewritten = iter(self.rewriting.run([trace for trace in traces if trace.question.history]))
        return [next(rewritten) if trace.question.history else _own(trace) for trace in traces]


def _own(trace: Trace) -> Outcome:
    return Outcome({"search_query": trace.question.text}, seconds=0.0)


def _codes(text: str) -> set[str]:
    return {code.strip("./-").lower() for code in _CODE.findall(text)}


def own_words(_: Parts) -> OwnWords:
    """Return the stage that searches the user's wording."""
    return OwnWords()


def proposed(parts: Parts) -> GuardedRewrite | AnyRewrite:
    """Return the stage that searches what was proposed: unless it has drifted, where there is a guard."""
    if not parts.query.guard:
        return AnyRewrite()
    return GuardedRewrite(parts.embedder, parts.query.min_similarity)


def of_follow_ups(parts: Parts) -> RewrittenFollowUps:
    """Return the stage that searches what was proposed for questions with a conversation."""
    return RewrittenFollowUps(proposed(parts))
