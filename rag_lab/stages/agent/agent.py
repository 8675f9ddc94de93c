"""An agent in place of the single pass: a graph whose nodes are stages, walked for one question at a time.

A node's call is the call of a stage: remembered under the state that it reads, booked, and held to the asker's rights.
LangGraph keeps the state and routes; how often a node may be visited is limited here. A model that cannot keep to the
form of a node costs nobody an answer: the single pass answers, as the record says.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypedDict

from pydantic import BaseModel

from rag_lab.access import allowed_labels
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.memory.results import Memory, Replayed
from rag_lab.models.protocols import ChatReply, ChatRequest, Concurrent, Message
from rag_lab.records import Passage, Question, StageRecord, StageStatus, Trace, Visit
from rag_lab.stages.config import AgentConfig
from rag_lab.stages.context import render_passages
from rag_lab.stages.generate import earlier_messages
from rag_lab.stages.run_stage import run_stage
from rag_lab.stages.stage import ACCESS, SUMS, ChatStage, Outcome, Stage, chat_outcome, shipped_chat, summed
from rag_lab.stages.understand import read_object

AGENT = "agent"
ALL = "all"  # in place of a namespace: whatever the asker may see


@dataclass(frozen=True)
class SearchTool:
    """Finds `results` units by the stages of retrieval; `context` makes what turns so many hits into passages."""

    index: CorpusIndex
    retrieval: tuple[Stage, ...]
    results: int
    context: Callable[[int], Stage]
    context_tokens: int

    def identity(self) -> dict[str, object]:
        """The stages by which it searches and assembles, and how many results each search gives."""
        stages = [dict(stage.identity()) for stage in (*self.retrieval, self.context(1))]
        return {"stages": stages, "results": self.results}

    def namespaces(self, question: Question) -> list[str]:
        """Return what the asker may search in: `all`, and the namespaces in order where there are several."""
        labels = self.index.chunks.labels
        allowed = allowed_labels(labels, question)
        names = sorted({json.loads(label)[0] for label in (labels if allowed is None else allowed)} - {""})
        return [ALL, *names]

    def find(self, asked: Question, query: str, namespace: str, memory: Memory | None, replayed: Replayed) -> Trace:
        """Return a trace with the best `results` as `ranked`, for the rights of who `asked`."""
        name = asked.namespace if namespace == ALL else namespace  # of those that `namespaces` returns
        question = Question(asked.question_id, query, may_see=asked.may_see, namespace=name)
        trace = Trace(question, search_query=query)
        for stage in self.retrieval:
            (trace,) = run_stage(stage, [trace], memory, replayed=replayed)
        return replace(trace, ranked=trace.ranked[: self.results])


PROMPTS_VERSION = 1  # results are remembered by it: change it with the wording
NOTHING = "none yet"
_PARTS = {  # what each node is shown, in order
    "supervisor": ("question", "passages", "answer"),
    "tool_call": ("question", "namespaces", "passages", "searched"),
    "grade": ("question", "passages"),
    "refine": ("question", "searched"),
}
_WITH_EARLIER = ("supervisor", "tool_call")  # which also read the conversation


def node_messages(node: str, trace: Trace, namespaces: Sequence[str] = ()) -> tuple[Message, ...]:
    """Return the chat of a node: where to go next, a call of the tool, which passages are relevant, another query."""
    queries = [visit.query for visit in trace.visits if visit.node == "search"] or [trace.search_query or ""]
    answer = trace.answer.text if trace.answer else NOTHING
    says = {
        "question": f"Question: {trace.question.text}",
        "namespaces": f"Namespaces: {', '.join(namespaces)}",
        "passages": f"Passages:\n{render_passages(trace.passages) or NOTHING}",
        "searched": f"Searched: {'; '.join(filter(None, queries)) or NOTHING}",
        "answer": f"Answer: {answer}",
    }
    earlier = earlier_messages(trace.remembered) if node in _WITH_EARLIER else ()
    return shipped_chat(node, "\n\n".join(says[part] for part in _PARTS[node]), earlier)


STATE = ("question.text", "remembered", "passages", "answer", "visits", *ACCESS)  # what a node's call depends on
_TOKENS = 96  # of a node's reply


class State(TypedDict):
    """What the nodes of a graph share about one question."""

    trace: Trace  # of this walk alone: its records, visits, and the passages found so far
    spent: tuple[ChatReply, ...]  # what each visit cost, without text
    calls: dict[str, int]  # visits of each node
    next: str  # the node to go to; "" ends the walk
    end: str  # why it ended before the model said so
    broken: str  # what the model could not do; "" where it kept to the form


@dataclass(frozen=True)
class Agent(ChatStage):
    """What the kinds of agent share. `answering` are the stages of a single pass that answer from passages."""

    answering: tuple[Stage, ...]
    tool: SearchTool
    limits: AgentConfig
    seed: int = 0
    memory: Memory | None = field(default=None, compare=False)
    replayed: Replayed = field(default_factory=Replayed, compare=False)

    name = AGENT
    reads = ("question.text", "question.history", "remembered", "ranked", "passages", *ACCESS)
    writes = ("visits", "ranked", "passages", "prompt", "raw_text", "answer")
    batch_size = 8
    at_most = True
    KEEPS: ClassVar[bool] = False  # whether it begins with what the single pass has found
    LIMITS: ClassVar[tuple[str, ...]]  # those that can change its results; the second bounds its visits
    NODES: ClassVar[tuple[str, ...]]  # the first one first; each is the method of this name, `_search`, and sets `next`

    def identity(self) -> Mapping[str, Any]:
        """The class with its version, its stages, and the limits that it heeds."""
        return {**super().identity(), "limits": {name: getattr(self.limits, name) for name in self.LIMITS}}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return one outcome for each trace, in order; side by side where the model gains nothing from batches."""
        held = nullcontext() if self.memory is None else self.memory.opened()
        with held, ThreadPoolExecutor(min(len(traces), getattr(self.model, "concurrency", 1)) or 1) as pool:
            walk = pool.map if isinstance(self.model, Concurrent) else map
            return list(walk(self.outcome, traces))

    def outcome(self, trace: Trace) -> Outcome:
        """Walk the graph for one question."""
        start = replace(trace, stages=(), prompt=None, raw_text=None, answer=None, visits=())
        if not self.KEEPS:
            start = replace(start, ranked=(), passages=())
        first = State(trace=start, spent=(), calls={}, next="", end="", broken="")
        # each worker is called up to its limit, each time after a decision; then come a last turn and an answer
        most_nodes = 2 * (len(self.NODES) - 1) * getattr(self.limits, self.LIMITS[1]) + 2
        state: State = self._graph.invoke(first, {"recursion_limit": most_nodes + 1})
        status: StageStatus = "ok"
        reason = state["end"]
        if state["broken"] and state["trace"].answer:
            status, reason = "fallback", f"{state['broken']}; the answer before it counts"
        elif state["broken"]:
            status, reason = "fallback", f"{state['broken']}; the single pass answers"
            alone = replace(state["trace"], ranked=trace.ranked, passages=trace.passages)
            visit = Visit("generate", "from the passages of the single pass")
            state = self.visit({**state, "trace": alone}, visit, *self.answering)
        walked, spent = state["trace"], state["spent"]
        if walked.failure and walked.answer is None:
            status, reason = "failed", walked.failure.reason
        visits = tuple(
            replace(visit, **{name: getattr(cost, name) for name in ("seconds", "tokens_in", "tokens_out", "cost_usd")})
            for visit, cost in zip(walked.visits, spent, strict=True)
        )
        updates = {name: getattr(walked, name) for name in self.writes} | {"visits": visits}
        earlier_s = sum(record.seconds if record.remembered else record.replayed_s for record in walked.stages)
        outcome = chat_outcome(summed(spent), updates, status, reason)
        return replace(outcome, replayed_s=earlier_s)

    def visit(self, state: State, visit: Visit | None, *stages: Stage) -> State:
        """Return the state after these stages; one that adds no visit (nor is `visit` named) has broken the walk."""
        before = trace = state["trace"]
        for stage in stages:
            (trace,) = run_stage(stage, [trace], self.memory, replayed=self.replayed)
        if visit is not None:
            trace = replace(trace, visits=(*trace.visits, visit))
        records = trace.stages[len(before.stages) :]
        if len(trace.visits) == len(before.visits):
            why = records[-1].reason
            trace = replace(trace, visits=(*trace.visits, Visit(stages[0].name, why)))
            state = {**state, "broken": why}
        node = trace.visits[-1].node
        calls = {**state["calls"], node: state["calls"].get(node, 0) + 1}
        return {**state, "trace": trace, "calls": calls, "spent": (*state["spent"], _cost(records))}

    def search(self, state: State, query: str, namespace: str) -> State:
        """Return the state after a search, of which each span that is new is numbered after those before it.

        The same search again ends the walk, as its results would be those that are there.
        """
        trace = state["trace"]
        allowed = self.tool.namespaces(trace.question)
        if namespace not in allowed:
            refused = f"refused: {namespace!r} is none of {', '.join(allowed)}"
            return self.visit(state, Visit("search", refused, query, namespace))
        if any((one.query, one.namespace) == (query, namespace) for one in trace.visits if one.node == "search"):
            return {**state, "end": f"the same search was asked for again: {query}"}
        found = self.tool.find(trace.question, query, namespace, self.memory, self.replayed)
        known = {hit.span for hit in trace.ranked}
        new = [hit for hit in found.ranked if hit.span not in known]
        read = replace(trace, ranked=(*trace.ranked, *new), stages=(*trace.stages, *found.stages))
        visit = Visit("search", f"{len(new)} of {len(found.ranked)} are new", query, namespace, len(new))
        state = self.visit({**state, "trace": read}, visit, self.tool.context(len(read.ranked)))
        cost = _cost(state["trace"].stages[len(trace.stages) :])
        return {**state, "spent": (*state["spent"][:-1], cost)}

    def _generate(self, state: State) -> State:
        state = {**state, "next": ""}
        n = len(state["trace"].passages)
        visit = Visit("generate", f"of {n} passages" if n != 1 else "of 1 passage")
        state = self.visit(state, visit, *self.answering)
        failure = state["trace"].failure
        return {**state, "end": failure.reason} if failure else state

    def most_passages(self, n: int) -> tuple[Passage, ...]:
        """Return the longest context there can be, of `n` passages, as a forecast counts it."""
        text = "word " * (self.tool.context_tokens // max(n, 1))
        return tuple(Passage(number, "?", "?", None, 0, 0, text) for number in range(1, n + 1))

    def answer_requests(self, trace: Trace) -> list[ChatRequest]:
        """Return what an answer from the longest context asks."""
        return [r for stage in self.answering if isinstance(stage, ChatStage) for r in stage.requests_for(trace)]

    @cached_property
    def _graph(self) -> Any:
        from langchain_core.runnables import RunnableLambda
        from langgraph.graph import END, START, StateGraph

        builder = StateGraph(State)
        for name in self.NODES:
            builder.add_node(name, RunnableLambda(getattr(self, f"_{name}")))
            builder.add_conditional_edges(
                name,
                lambda state: state["next"] if state["next"] and not state["broken"] else END,
                {**{other: other for other in self.NODES}, END: END},
            )
        builder.add_edge(START, self.NODES[0])
        return builder.compile()


@dataclass(frozen=True)
class Node(ChatStage):
    """A call of the model at one state of a walk: its reply, an object of the `FORM`, becomes a visit."""

    seed: int

    VERSION = PROMPTS_VERSION
    reads: ClassVar[tuple[str, ...]] = STATE
    writes = ("visits",)
    name: ClassVar[str]
    SCHEMA: ClassVar[Mapping[str, Any]]
    FORM: ClassVar[type[BaseModel]]
    UNREAD: ClassVar[str]  # what it means where the reply is no such object

    def asks(self, trace: Trace) -> tuple[tuple[Message, ...], Mapping[str, Any]]:
        """Return messages and JSON schema for one state."""
        return node_messages(self.name, trace), self.SCHEMA

    def visited(self, trace: Trace, found: Any) -> Visit | str:
        """Return the visit that a reply means, or why it means none."""
        raise NotImplementedError

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one state."""
        messages, schema = self.asks(trace)
        return [ChatRequest(messages, _TOKENS, seed=self.seed + trace.repeat, json_schema=schema)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Add the reply as a visit."""
        found = read_object(replies[0], self.FORM)
        visit = found if isinstance(found, str) else self.visited(trace, found)
        if isinstance(visit, str):
            return chat_outcome(replies[0], {}, "fallback", f"{self.UNREAD}: {visit}")
        return chat_outcome(replies[0], {"visits": (*trace.visits, visit)})


def _cost(records: Sequence[StageRecord]) -> ChatReply:
    """Return what stages cost together, as of one call."""
    return summed(
        [
            ChatReply(transient=one.curable, machine=one.machine, **{name: getattr(one, name) for name in SUMS})
            for one in records
        ]
    )
