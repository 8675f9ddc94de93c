"""Which words are searched: the user's, or the model's rewrite where a measured guard lets it through, or any.

The guard refuses a rewrite that has drifted: one whose embedding is far from the question's, or that has lost a code,
a number or a part name of the question.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.models.protocols import Embedder
from rag_lab.models.truncation import truncated_in_texts
from rag_lab.records import Trace
from rag_lab.stages.stage import BuiltInStage, CustomStage, Exchange, Outcome, Parts, Stage, stage_of
from rag_lab.stages.steps import FOLLOW_UPS, REWRITINGS

REWRITE = "rewrite"
_NOTHING = "no rewrite to search"
_CODE = re.compile(r"[\w./-]*\d[\w./-]*")


def rewrite_stages(parts: Parts) -> tuple[Stage, ...]:
    """Return what says which words are searched; a custom rewriting proposes them, and the guard follows."""
    proposed: Callable[..., Stage] = AnyRewrite
    if parts.query.guard:
        proposed = partial(GuardedRewrite, parts.embedder, parts.query.min_similarity)
    built_in: dict[str, Callable[[], Stage]] = {
        "none": PlainWords,
        "joined": lambda: PlainWords(joined=True),
        FOLLOW_UPS: lambda: proposed(only_follow_ups=True),
        "llm": proposed,
    }
    custom = partial(CustomStage, "CustomRewriting", "propose", ("question.text",), ("proposed_query",), propose, {})
    stage = stage_of(REWRITINGS, REWRITE, parts.query.rewrite, parts, built_in, custom)
    return (stage,) if "search_query" in stage.writes else (stage, proposed())


@dataclass(frozen=True)
class PlainWords(BuiltInStage):
    """Search the user's own wording, or what is remembered of the conversation followed by it.

    The latter is the plainest baseline of conversational search, which any rewriter of follow-up questions has to beat
    (Dalton et al. 2020, "TREC CAsT 2019: The conversational assistance track overview", section 5).
    """

    joined: bool = False

    name = REWRITE
    writes = ("search_query",)

    @property
    def reads(self) -> tuple[str, ...]:
        """The question, and the conversation where it is joined."""
        return ("question.text", "remembered") if self.joined else ("question.text",)

    def outcome(self, trace: Trace) -> Outcome:
        """Copy the text, or join the texts."""
        return Outcome({"search_query": in_context(trace) if self.joined else trace.question.text}, seconds=0.0)


@dataclass(frozen=True)
class AnyRewrite(BuiltInStage):
    """Search the model's rewrite, wherever it has gone; without one, the user's wording.

    `only_follow_ups` searches questions without a conversation in the user's wording.
    """

    only_follow_ups: bool = False

    name = REWRITE
    reads = ("question.text", "question.history", "proposed_query")
    writes = ("search_query",)

    def outcome(self, trace: Trace) -> Outcome:
        """Take the rewrite as it is."""
        if self.only_follow_ups and not trace.question.history:
            return Outcome({"search_query": trace.question.text}, seconds=0.0)
        if trace.proposed_query:
            return Outcome({"search_query": trace.proposed_query}, seconds=0.0)
        return Outcome({"search_query": trace.question.text}, "fallback", _NOTHING, seconds=0.0)


@dataclass(frozen=True)
class GuardedRewrite(BuiltInStage):
    """Search the model's rewrite, unless it has drifted from the question: then fall back to the user's wording.

    `only_follow_ups` searches questions without a conversation in the user's wording.
    """

    embedder: Embedder
    min_similarity: float
    only_follow_ups: bool = False

    VERSION = 2
    name = REWRITE
    reads = ("question.text", "question.history", "remembered", "proposed_query")
    writes = ("search_query",)
    batch_size = 256
    costly = True

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Accept or refuse each rewrite by its cosine with the question, alone or after what is remembered."""
        rewritten = [trace for trace in traces if trace.question.history or not self.only_follow_ups]
        proposed = [trace for trace in rewritten if trace.proposed_query]
        texts = [[t.proposed_query or "", t.question.text, in_context(t)] for t in proposed]
        decided = {id(trace): Outcome({"search_query": trace.question.text}, seconds=0.0) for trace in traces}
        decided |= {
            id(trace): Outcome({"search_query": trace.question.text}, "fallback", _NOTHING) for trace in rewritten
        }
        if proposed:
            embedded = [self.embedder.embed_queries(list(column)) for column in zip(*texts, strict=True)]
            for trace, some, r, a, w in zip(proposed, texts, *embedded, strict=True):
                truncated = sum(truncated_in_texts(self.embedder, [*set(some)], "query"))  # each is read once
                outcome = self._decide(trace, float(max(r @ a, r @ w)))
                decided[id(trace)] = replace(outcome, truncated_tokens=truncated)
        return [decided[id(trace)] for trace in traces]

    def _decide(self, trace: Trace, similarity: float) -> Outcome:
        plain, rewrite = {"search_query": trace.question.text}, trace.proposed_query or ""
        codes, kept = (
            {code.strip("./-").lower() for code in _CODE.findall(text)} for text in (trace.question.text, rewrite)
        )
        if missing := sorted(codes - kept):
            return Outcome(plain, "fallback", f"rewrite refused: it lost {', '.join(missing)}")
        if similarity < self.min_similarity:
            reason = f"rewrite refused: cosine {similarity:.2f} with the question is below {self.min_similarity:.2f}"
            return Outcome(plain, "fallback", reason)
        return Outcome({"search_query": rewrite}, reason=f"cosine {similarity:.2f} with the question")


def in_context(trace: Trace) -> str:
    """Return what is remembered of the conversation and the question as one text."""
    memory = trace.remembered
    return " ".join(filter(None, [memory.summary, *(turn.content for turn in memory.turns), trace.question.text]))


def propose(trace: Trace) -> Exchange:
    """`(question) -> str`, a proposed rewrite. The guard holds it to the question, as it does a model's.

    Without any text the guard falls back to the user's wording.
    """
    returned = yield (trace.question.text,)
    return Outcome({"proposed_query": checked_text(returned, "the rewriting").strip() or None})


def checked_text(returned: Any, what: str) -> str:
    """Return `returned` if it is text."""
    if not isinstance(returned, str):
        raise CustomCodeError(f"{what} returned {type(returned).__name__} where text is due")
    return returned
