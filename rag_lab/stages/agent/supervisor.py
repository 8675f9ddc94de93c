"""The supervisor: a model decides whether to search for more, to answer, or to finish (DocGenie's graph)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel

from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.records import Answer, Trace, Visit
from rag_lab.stages.agent import prompts
from rag_lab.stages.agent.agent import Agent, Node, State
from rag_lab.stages.agent.search_tool import SearchTool
from rag_lab.stages.stage import object_schema

_NODES = ("context", "generate")


@dataclass(frozen=True)
class Supervisor(Agent):
    """Each worker is called at least once and at most `limits.max_calls` times; then the last answer counts."""

    VERSION = prompts.VERSION
    LIMITS = ("results", "max_calls", "tool_calls")

    def nodes(self) -> dict[str, Callable[[State], State]]:
        """Return the supervisor and its two workers, which report to it."""
        return {"supervisor": self._decide, "context": self._context, "generate": self._generate}

    def most_nodes(self) -> int:
        """Return the calls of both workers, each after a decision."""
        return 2 * len(_NODES) * self.limits.max_calls + 1

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the most that can be asked: every worker to its limit, with the longest context."""
        limits = self.limits
        searches = limits.max_calls * limits.tool_calls
        full = replace(
            trace,
            passages=self.most_passages(searches * limits.results),
            answer=Answer("word " * 100),
            visits=(Visit("search", "", "word " * 16),) * searches,
        )
        decisions = Decide(self.model, self.seed).requests_for(full) * (len(_NODES) * limits.max_calls)
        calls = ToolCall(self.model, self.seed, self.tool).requests_for(full) * searches
        return [*decisions, *calls, *self.answer_requests(full) * limits.max_calls]

    def _decide(self, state: State) -> State:
        calls, limit = state["calls"], self.limits.max_calls
        open_nodes = [name for name in _NODES if calls.get(name, 0) < limit]
        if state["end"] or not open_nodes:
            return self._finish(state, state["end"] or f"both workers were called {limit} times")
        state = self.visit(state, None, Decide(self.model, self.seed))
        if state["broken"]:
            return state
        wanted = state["trace"].visits[-1].says
        if wanted == "finish":
            missing = [name for name in _NODES if not calls.get(name)]
            return {**state, "next": missing[0]} if missing else self._finish(state, "")
        return {**state, "next": wanted if wanted in open_nodes else open_nodes[0]}

    def _finish(self, state: State, end: str) -> State:
        """End the walk; without any answer, its passages are answered from first."""
        return {**state, "end": end, "next": "" if state["trace"].answer else "generate"}

    def _context(self, state: State) -> State:
        calls = {**state["calls"], "context": state["calls"].get("context", 0) + 1}
        state = {**state, "calls": calls, "next": "supervisor"}
        for _ in range(self.limits.tool_calls):
            state = self.visit(state, None, ToolCall(self.model, self.seed, self.tool))
            visit = state["trace"].visits[-1]
            if state["broken"] or not visit.query:
                return state
            state = self.search(state, visit.query, visit.namespace)
            if state["end"]:
                return state
        return state

    def _generate(self, state: State) -> State:
        asked = [visit.node for visit in state["trace"].visits if visit.node != "supervisor"]
        if asked[-1:] == ["generate"]:
            return {**state, "end": "the same passages were to be answered from again", "next": ""}
        return self.generate({**state, "next": "" if state["end"] else "supervisor"})


class Decision(BaseModel):
    """The object that the supervisor returns."""

    next: Literal["context", "generate", "finish"]


@dataclass(frozen=True)
class Decide(Node):
    """Ask where to go next."""

    name = "supervisor"
    SCHEMA = prompts.DECISION
    FORM = Decision
    UNREAD = "the supervisor decided nothing"

    def visited(self, trace: Trace, found: Decision) -> Visit:
        """Return the decision."""
        return Visit(self.name, found.next)


class SearchCall(BaseModel):
    """The arguments of the tool that a model returns."""

    query: str
    namespace: str = "all"


@dataclass(frozen=True)
class ToolCall(Node):
    """Ask for a call of the tool, or an empty query for none."""

    tool: SearchTool

    name = "tool_call"
    FORM = SearchCall
    UNREAD = "the search was not called"

    def asks(self, trace: Trace) -> tuple[tuple[Message, ...], Mapping[str, Any]]:
        """Return messages and JSON schema for one state."""
        namespaces = self.tool.namespaces(trace.question)
        chosen = {"type": "string", "enum": [*namespaces]}
        schema = object_schema(query={"type": "string"}, namespace=chosen)  # an empty query asks for no more
        return prompts.node_messages(self.name, trace, namespaces), schema

    def visited(self, trace: Trace, found: SearchCall) -> Visit:
        """Return the call."""
        query = " ".join(found.query.split())
        return Visit(self.name, query or "nothing is missing", query, found.namespace)
