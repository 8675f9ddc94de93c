"""What is searched by: the user's words or a model's, and hypothetical documents.

A model's rewrite is searched where a measured guard lets it through, or any. The guard refuses one that has drifted:
whose embedding is far from the question's, or that has lost a code, a number or a part name of the question.

HyDE (Gao et al. 2022, "Precise zero-shot dense retrieval without relevance labels"): the route says which questions get
a document, and whose prompt writes it: the single general one of the paper, or that of the query class.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.models.protocols import ChatReply, ChatRequest, Embedder, Message
from rag_lab.models.truncation import truncated_of
from rag_lab.records import QueryClass, Trace
from rag_lab.stages import stage as base
from rag_lab.stages.chat_template import SHIPPED_PROMPTS, ChatTemplate
from rag_lab.stages.stage import BuiltInStage, ChatStage, CustomStage, Exchange, Off, Outcome, Parts, Stage, stage_of
from rag_lab.stages.steps import FOLLOW_UPS, HYDE_WRITERS, REWRITINGS

HYDE = "hyde"
SUGGESTED: Literal["suggested"] = "suggested"
_TEMPERATURE = 0.7  # Gao et al. 2022, section 4.1
_SEEDS_APART = 1_000_003  # so that no document of one repeat is sampled as another repeat's
_SWITCH = {True: "on", False: "off"}
_NOT_ROUTED = Outcome(reason="not routed to HyDE", seconds=0.0)


GENERAL = "general"

# By route: the single prompt of plain HyDE, and one for each class.
HYDE_PROMPTS: dict[str, str] = SHIPPED_PROMPTS["hyde"]


def hyde_messages(route: str, query: str) -> tuple[Message, ...]:
    """Return the chat that asks for a hypothetical document."""
    return base.few_shot(HYDE_PROMPTS[route], (), f"Question: {query}")


def hyde_stages(parts: Parts) -> tuple[Stage, Stage]:
    """Return what routes questions to HyDE, and what writes hypothetical documents."""
    query = parts.query
    if query.hyde == "none":
        return Off("route"), Off(HYDE)
    rules = {"always": None, "suggested": SUGGESTED, "classified": query.class_to_hyde}
    prompt = parts.prompts.get("hyde")
    llm = {"llm": lambda: Hyde(parts.chat("hyde", HYDE), query.hyde_max_tokens, parts.seed, prompt, query.hyde_n)}
    custom = partial(CustomStage, "CustomHyde", HYDE, Hyde.reads, ("hypothetical",), _document, {})
    return RouteHyde(rules[query.hyde]), stage_of(HYDE_WRITERS, HYDE, query.hyde_writer, parts, llm, custom)


@dataclass(frozen=True)
class RouteHyde(BuiltInStage):
    """Route each question.

    `class_to_hyde` is None for `always`: every question by the general prompt. Where it is `SUGGESTED` the
    understanding decides, and the class says by whose prompt, the general one where there is none. The class rule
    overrides the suggestion.
    """

    class_to_hyde: Mapping[QueryClass, bool] | Literal["suggested"] | None

    name = "route"
    reads = ("query_class", "hyde_suggested")
    writes = ("hyde_route",)

    def outcome(self, trace: Trace) -> Outcome:
        """Decide for one trace."""
        if self.class_to_hyde is None:
            return Outcome({"hyde_route": GENERAL}, reason="always")
        suggested = trace.hyde_suggested
        if self.class_to_hyde == SUGGESTED:
            if suggested is None:
                return Outcome(status="fallback", reason="no HyDE: the understanding suggested nothing")
            route = {"hyde_route": trace.query_class or GENERAL} if suggested else {}
            return Outcome(route, reason=f"the understanding suggested it {_SWITCH[suggested]}")
        if trace.query_class is None:
            return Outcome(status="fallback", reason="no HyDE: the question has no class")
        on = self.class_to_hyde[trace.query_class]
        overruled = "" if suggested in (None, on) else f", against the model's suggestion ({_SWITCH[bool(suggested)]})"
        updates = {"hyde_route": trace.query_class} if on else {}
        return Outcome(updates, reason=f"class {trace.query_class}: {_SWITCH[on]}{overruled}")


@dataclass(frozen=True)
class Hyde(ChatStage):
    """Write `n` hypothetical documents for each question that is routed to one: one greedily, several sampled."""

    max_tokens: int
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of those that are built in
    n: int = 1

    PROMPTS = 1  # raised with the wording of `HYDE_PROMPTS`
    name = HYDE
    reads = ("search_query", "hyde_route")
    writes = ("hypothetical", "other_hypotheticals")

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return `n` requests for a trace that is routed to a prompt."""
        query, route = trace.search_query or trace.question.text, trace.hyde_route
        if not route:
            return []
        values = {"question": query, "query_class": route}
        messages = self.prompt.messages(values) if self.prompt else hyde_messages(route, query)
        return [
            ChatRequest(
                messages,
                max_tokens=self.max_tokens,
                temperature=0.0 if self.n == 1 else _TEMPERATURE,
                seed=self.seed + trace.repeat + number * _SEEDS_APART,
            )
            for number in range(self.n)
        ]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Return what was written, and what all calls cost; a call that gave nothing is said."""
        if not replies:
            return _NOT_ROUTED
        texts = [text for reply in replies if not reply.error and (text := reply.text.strip())]
        faults = [one.error or base.nothing_written(one) for one in replies if one.error or not one.text.strip()]
        whole = base.summed(replies)
        if not texts:
            return base.chat_outcome(whole, {}, "fallback", f"searched without HyDE: {faults[0]}")
        several = {"other_hypotheticals": tuple(texts[1:])} if len(replies) > 1 else {}
        reason = f"{len(texts)} of {len(replies)} documents were written: {faults[0]}" if faults else ""
        return base.chat_outcome(whole, {"hypothetical": texts[0], **several}, reason=reason)


def _document(trace: Trace) -> Exchange:
    """`(question, query_class) -> str`: of a routed question, by its class or None for the general route; may be ""."""
    if not trace.hyde_route:
        return _NOT_ROUTED
    query_class = None if trace.hyde_route == GENERAL else trace.hyde_route
    returned = yield trace.search_query or trace.question.text, query_class
    document = checked_text(returned, "the writer of hypothetical documents").strip()
    if not document:
        return Outcome(status="fallback", reason="searched without HyDE: nothing was written")
    return Outcome({"hypothetical": document})


REWRITE = "rewrite"
_NOTHING = "no rewrite to search"
_CODE = re.compile(r"[\w./-]*\d[\w./-]*")


def rewrite_stages(parts: Parts) -> tuple[Stage, ...]:
    """Return what says which words are searched; a custom rewriting proposes them, and the guard follows."""
    guard = (parts.embedder, parts.query.min_similarity) if parts.query.guard else ()
    proposed: Callable[..., Stage] = partial(GuardedRewrite, *guard)
    built_in: dict[str, Callable[[], Stage]] = {
        "none": PlainWords,
        "joined": lambda: PlainWords(joined=True),
        FOLLOW_UPS: lambda: proposed(only_follow_ups=True),
        "llm": proposed,
    }
    reads = ("question.text", "remembered")
    custom = partial(CustomStage, "CustomRewriting", "propose", reads, ("proposed_query",), propose, {})
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
class GuardedRewrite(BuiltInStage):
    """Search the rewrite, of follow-ups alone where `only_follow_ups`; an embedder refuses one that has drifted."""

    embedder: Embedder | None = None
    min_similarity: float = 0.0
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
        decided |= {id(one): Outcome({"search_query": one.question.text}, "fallback", _NOTHING) for one in rewritten}
        if self.embedder is None:
            decided |= {id(one): Outcome({"search_query": one.proposed_query}, seconds=0.0) for one in proposed}
        elif proposed:
            embedded = [self.embedder.embed_queries(list(column)) for column in zip(*texts, strict=True)]
            for trace, some, r, a, w in zip(proposed, texts, *embedded, strict=True):
                truncated = sum(truncated_of(self.embedder, [*set(some)], "query"))  # each is read once
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
    return " ".join([*remembered_texts(trace), trace.question.text])


def remembered_texts(trace: Trace) -> Iterator[str]:
    """Return what is remembered of the conversation, the oldest first: a summary where there is one, then the turns."""
    return filter(None, [trace.remembered.summary, *(turn.content for turn in trace.remembered.turns)])


def propose(trace: Trace) -> Exchange:
    """`(question, history) -> str`: a rewrite, held to the guard as a model's; `history` are the texts remembered."""
    returned = yield trace.question.text, list(remembered_texts(trace))
    return Outcome({"proposed_query": checked_text(returned, "the rewriting").strip() or None})


def checked_text(returned: Any, what: str) -> str:
    """Return `returned` if it is text."""
    if not isinstance(returned, str):
        raise CustomCodeError(f"{what} returned {type(returned).__name__} where text is due")
    return returned
