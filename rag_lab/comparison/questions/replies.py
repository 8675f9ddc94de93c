"""What the variants answered to one question, and word for word what their models were sent and wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_lab.comparison.questions.in_common import Shared, share
from rag_lab.models.thinking import split_thinking
from rag_lab.records import Trace


@dataclass(frozen=True, slots=True)
class Reply:
    """What the variant answered, or what its model wrote where that could not be read."""

    text: str
    abstained: bool
    citations: tuple[tuple[int, str, str], ...]  # number, place, quote
    rejected: tuple[str, ...]
    failure: str  # empty where there is an answer


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a model was sent, message by message, and what came back; each empty where there was none."""

    prompt: str
    raw: str  # without the thinking
    thinking: str
    thinking_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, and how those who share it came to it: `exchanges` share an `Exchange`."""

    reply: Shared
    exchanges: tuple[Shared, ...]


def answered(runs: Sequence[tuple[str, Trace]]) -> tuple[Answered, ...]:
    """Return what was answered, for (letter, trace) pairs of one question; equal replies stand together."""
    replies = share([(letter, reply) for letter, trace in runs if (reply := _reply(trace))], len(runs))
    traces = dict(runs)
    return tuple(
        Answered(one, share([(who, _exchange(traces[who])) for who in one.who], len(one.who))) for one in replies
    )


def place(source: str, page: int | None) -> str:
    """Write where a passage stands: `manual.pdf, p. 3`."""
    return source if page is None else f"{source}, p. {page}"


def _reply(trace: Trace) -> Reply | None:
    """Return the reply, or None where the variant was not to answer and nothing failed."""
    if trace.answer is None:
        failure = trace.failure
        if failure is None:
            return None
        written, _ = split_thinking(trace.raw_text or "")
        return Reply(written, False, (), (), f"{failure.stage} failed: {failure.reason}")
    cited = tuple((c.number, place(c.source, c.page), c.quote) for c in trace.answer.citations)
    return Reply(trace.answer.text, trace.answer.abstained, cited, trace.answer.rejected_citations, "")


def thinking_of(trace: Trace) -> str:
    """Return what the reader thought, also where no answer came of it."""
    return trace.answer.thinking if trace.answer else split_thinking(trace.raw_text or "")[1]


def _exchange(trace: Trace) -> Exchange:
    thinking = thinking_of(trace)
    raw = split_thinking(trace.raw_text or "")[0] if thinking else trace.raw_text or ""
    tokens = sum(record.thinking_tokens for record in trace.stages if record.stage == "generate")
    return Exchange(trace.prompt or "", raw, thinking, tokens)
