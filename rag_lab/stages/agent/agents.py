"""The three agents, and which of them a pipeline has.

`Supervisor` is DocGenie's graph. `Corrective` is Epistemon's V3: Yan et al. 2024, "Corrective retrieval augmented
generation", with a language model as the evaluator. `SelfSearch`: Jin et al. 2025, "Search-R1: training LLMs to reason
and leverage search engines", section 3; for models that can write `<search>…</search>`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import create_model

from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.records import Answer, Trace, Visit
from rag_lab.stages.agent.agent import AGENT, ALL, PROMPTS_VERSION, STATE, Agent, Node, SearchTool, State, node_messages
from rag_lab.stages.chat_template import SHIPPED_PROMPTS
from rag_lab.stages.context import Assemble, context_budget, render_passages
from rag_lab.stages.generate import checked_citations, earlier_messages, is_abstention, without_loop
from rag_lab.stages.stage import ChatStage, Outcome, Parts, Stage, chat_outcome, nothing_written, object_schema, written

DECISION = object_schema(next={"type": "string", "enum": ["context", "generate", "finish"]})
GRADES = object_schema(relevant={"type": "array", "items": {"type": "integer"}, "maxItems": 100})
QUERY = object_schema(query={"type": "string"})
# The objects that models return.
_DECISION = create_model("Decision", next=Literal["context", "generate", "finish"])
_SEARCH_CALL = create_model("SearchCall", query=str, namespace=(str, "all"))
_GRADES = create_model("Grades", relevant=list[int])
_REFINED = create_model("Refined", query=str)
_NODES = ("context", "generate")


@dataclass(frozen=True)
class Supervisor(Agent):
    """A model decides to search, answer or finish; each worker is called once to `limits.max_calls` times."""

    VERSION = PROMPTS_VERSION
    LIMITS = ("results", "max_calls", "tool_calls")
    NODES = ("supervisor", *_NODES)

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

    def _supervisor(self, state: State) -> State:
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
        state = super()._generate(state)
        return {**state, "next": "" if state["end"] else "supervisor"}


@dataclass(frozen=True)
class Decide(Node):
    """Ask where to go next."""

    name = "supervisor"
    SCHEMA = DECISION
    FORM = _DECISION
    UNREAD = "the supervisor decided nothing"

    def visited(self, trace: Trace, found: Any) -> Visit:
        """Return the decision."""
        return Visit(self.name, found.next)


@dataclass(frozen=True)
class ToolCall(Node):
    """Ask for a call of the tool, or an empty query for none."""

    tool: SearchTool

    name = "tool_call"
    FORM = _SEARCH_CALL
    UNREAD = "the search was not called"

    def asks(self, trace: Trace) -> tuple[tuple[Message, ...], Mapping[str, Any]]:
        """Return messages and JSON schema for one state."""
        namespaces = self.tool.namespaces(trace.question)
        chosen = {"type": "string", "enum": [*namespaces]}
        schema = object_schema(query={"type": "string"}, namespace=chosen)  # an empty query asks for no more
        return node_messages(self.name, trace, namespaces), schema

    def visited(self, trace: Trace, found: Any) -> Visit:
        """Return the call."""
        query = " ".join(found.query.split())
        return Visit(self.name, query or "nothing is missing", query, found.namespace)


_SEARCH = re.compile(r"<search>(.*?)(?:</search>|$)", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.DOTALL)
_NUMBERS = re.compile(r"\[(\d{1,9})\]")
_TOKENS = 400  # of a turn


@dataclass(frozen=True)
class SelfSearch(Agent):
    """At most `limits.searches` searches; what the model writes without one is its answer."""

    VERSION = PROMPTS_VERSION
    LIMITS = ("results", "searches")
    NODES = ("write", "search", "generate")

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the most that can be asked: all searches, with the longest context."""
        limits = self.limits
        full = replace(trace, passages=self.most_passages(limits.searches * limits.results), visits=())
        turns = (Visit("write", "word " * 100), Visit("search", "", "word", ALL, limits.results)) * limits.searches
        last = replace(full, visits=turns)
        writing = Write(self.model, self.seed).requests_for(last) * (limits.searches + 1)
        return [*writing, *self.answer_requests(full)]

    def _write(self, state: State) -> State:
        state = self.visit(state, None, Write(self.model, self.seed))
        visit = state["trace"].visits[-1]
        if not visit.query or state["broken"]:
            return {**state, "next": ""}
        if state["calls"].get("search", 0) >= self.limits.searches:
            return {**state, "next": "generate", "end": f"it had searched {self.limits.searches} times"}
        return {**state, "next": "search"}

    def _search(self, state: State) -> State:
        state = self.search({**state, "next": "write"}, state["trace"].visits[-1].query, ALL)
        return {**state, "next": "generate"} if state["end"] else state


@dataclass(frozen=True)
class Write(ChatStage):
    """Ask for the model's next turn: a search, or the answer."""

    seed: int = 0

    VERSION = PROMPTS_VERSION
    name = "write"
    reads = STATE
    writes = ("visits", "answer", "prompt", "raw_text")

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one state: the chat so far, of what the model wrote and what each search found."""
        messages = [
            Message("system", SHIPPED_PROMPTS["self_search"]["system"]),
            *earlier_messages(trace.remembered),
            Message("user", f"Question: {trace.question.text}"),
        ]
        shown = 0
        for visit in trace.visits:
            if visit.node == "search":
                found = trace.passages[shown : shown + visit.n_new]
                shown += visit.n_new
                text = render_passages(found) or visit.says
                messages.append(Message("user", f"<information>\n{text}\n</information>"))
            else:
                messages.append(Message("assistant", visit.says))
        return [ChatRequest(tuple(messages), _TOKENS, seed=self.seed + trace.repeat)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Add the turn as a visit; one without a search sets the answer, of which [n] are the citations."""
        reply = replies[0]
        text = reply.text.strip()
        searched = _SEARCH.search(text)
        if searched and (query := " ".join(searched[1].split())):
            visit = Visit(self.name, text[: searched.end()], query)
            return chat_outcome(reply, {"visits": (*trace.visits, visit)})
        tagged = _ANSWER.search(text)
        answer, _ = without_loop((tagged[1] if tagged else text).strip())
        if reply.error or not answer or searched:
            why = reply.error or ("the query is empty" if searched else nothing_written(reply))
            return chat_outcome(reply, {}, "fallback", f"it neither searched nor answered: {why}")
        citations, rejected = checked_citations(_NUMBERS.findall(answer), trace.passages)
        parsed = Answer(answer, citations, rejected, reply.thinking, is_abstention(answer))
        updates = {"visits": (*trace.visits, Visit(self.name, text)), "answer": parsed, "raw_text": text}
        return chat_outcome(reply, updates | {"prompt": written(requests[0].messages)})


@dataclass(frozen=True)
class Corrective(Agent):
    """Grade what was found; refine and search again at most `limits.rounds` times; then answer from what is relevant.

    Where nothing is ever relevant, the passages that were found last are answered from.
    """

    VERSION = PROMPTS_VERSION
    KEEPS = True
    LIMITS = ("results", "rounds")
    NODES = ("grade", "refine", "generate")

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the most that can be asked: all rounds, with the longest context."""
        rounds = self.limits.rounds
        full = replace(trace, passages=trace.passages or self.most_passages(self.limits.results))
        searched = replace(full, visits=(Visit("search", "", "word " * 16),) * rounds)
        gradings = Grade(self.model, self.seed).requests_for(full) * (rounds + 1)
        refinements = Refine(self.model, self.seed).requests_for(searched) * rounds
        return [*gradings, *refinements, *self.answer_requests(full)]

    def _grade(self, state: State) -> State:
        if not state["trace"].passages:
            return self._unless_spent(state)
        state = self.visit(state, None, Grade(self.model, self.seed))
        trace = state["trace"]
        relevant = {int(number) for number in trace.visits[-1].says.split() if number.isdigit()}
        kept = [passage for passage in trace.passages if passage.number in relevant]
        if state["broken"] or not kept:
            return self._unless_spent(state)
        spans = {(one.source, one.page) for one in kept}
        first = sorted(trace.ranked, key=lambda hit: (hit.source, hit.page) not in spans)  # stable: order is kept
        passages = tuple(replace(passage, number=number) for number, passage in enumerate(kept, start=1))
        return {**state, "trace": replace(trace, passages=passages, ranked=tuple(first)), "next": "generate"}

    def _unless_spent(self, state: State) -> State:
        rounds = self.limits.rounds
        if state["end"] or state["calls"].get("refine", 0) >= rounds:
            return {**state, "end": state["end"] or f"nothing was relevant in {rounds} rounds", "next": "generate"}
        return {**state, "next": "refine"}

    def _refine(self, state: State) -> State:
        state = self.visit({**state, "next": "grade"}, None, Refine(self.model, self.seed))
        query = state["trace"].visits[-1].query
        if state["broken"]:
            return state
        before = state["trace"]
        found = self.search({**state, "trace": replace(before, ranked=(), passages=())}, query, ALL)
        if found["end"]:
            return {**found, "trace": before, "next": "generate"}
        return found


@dataclass(frozen=True)
class Grade(Node):
    """Ask which passages are relevant."""

    name = "grade"
    SCHEMA = GRADES
    FORM = _GRADES
    UNREAD = "the passages were not graded"

    def visited(self, trace: Trace, found: Any) -> Visit:
        """Return the numbers of the relevant passages; numbers of no passage are left out."""
        numbers = sorted({number for number in found.relevant if 1 <= number <= len(trace.passages)})
        says = " ".join(map(str, numbers)) + f" of {len(trace.passages)}" if numbers else "none is relevant"
        return Visit(self.name, says)


@dataclass(frozen=True)
class Refine(Node):
    """Ask for another query."""

    name = "refine"
    reads = ("search_query", *STATE)
    SCHEMA = QUERY
    FORM = _REFINED
    UNREAD = "the query was not refined"

    def visited(self, trace: Trace, found: Any) -> Visit | str:
        """Return the query."""
        query = " ".join(found.query.split())
        return Visit(self.name, query, query) if query else "the query is empty"


_KINDS: dict[str, type[Agent]] = {"supervisor": Supervisor, "corrective": Corrective, "search": SelfSearch}


def agent_stage(parts: Parts, retrieval: tuple[Stage, ...], answering: tuple[Stage, ...]) -> Agent:
    """Return the agent that the configuration names; it searches by `retrieval` and answers by `answering`."""
    limits = parts.agent
    context = Assemble(parts.index, context_budget(parts), 1)
    tool = SearchTool(
        parts.index, retrieval, limits.results, lambda n: replace(context, final_k=n), parts.answer.context_tokens
    )
    return _KINDS[parts.answer.agent](
        parts.chat("generation", AGENT), answering, tool, limits, parts.seed, parts.memory, parts.replayed
    )
