"""The corrective agent: passages are graded, and where none is relevant the query is refined (Epistemon's V3).

Yan et al. 2024, "Corrective retrieval augmented generation", with a language model as the evaluator.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pydantic import BaseModel

from rag_lab.models.protocols import ChatRequest
from rag_lab.records import Trace, Visit
from rag_lab.stages.agent import prompts
from rag_lab.stages.agent.agent import STATE, Agent, Node, State
from rag_lab.stages.agent.search_tool import ALL


@dataclass(frozen=True)
class Corrective(Agent):
    """Grade what was found; refine and search again at most `limits.rounds` times; then answer from what is relevant.

    Where nothing is ever relevant, the passages that were found last are answered from.
    """

    VERSION = prompts.VERSION
    KEEPS = True
    LIMITS = ("results", "rounds")

    def nodes(self) -> dict[str, Callable[[State], State]]:
        """Return grading, refinement with the search after it, and the answer."""
        return {
            "grade": self._grade,
            "refine": self._refine,
            "generate": lambda state: self.generate({**state, "next": ""}),
        }

    def most_nodes(self) -> int:
        """Return gradings, refinements and the answer."""
        return 2 * self.limits.rounds + 2

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


class Grades(BaseModel):
    """The object that the grader returns."""

    relevant: list[int]


@dataclass(frozen=True)
class Grade(Node):
    """Ask which passages are relevant."""

    name = "grade"
    SCHEMA = prompts.GRADES
    FORM = Grades
    UNREAD = "the passages were not graded"

    def visited(self, trace: Trace, found: Grades) -> Visit:
        """Return the numbers of the relevant passages; numbers of no passage are left out."""
        numbers = sorted({number for number in found.relevant if 1 <= number <= len(trace.passages)})
        says = " ".join(map(str, numbers)) + f" of {len(trace.passages)}" if numbers else "none is relevant"
        return Visit(self.name, says)


class Refined(BaseModel):
    """The object that the refinement returns."""

    query: str


@dataclass(frozen=True)
class Refine(Node):
    """Ask for another query."""

    name = "refine"
    reads = ("search_query", *STATE)
    SCHEMA = prompts.QUERY
    FORM = Refined
    UNREAD = "the query was not refined"

    def visited(self, trace: Trace, found: Refined) -> Visit | str:
        """Return the query."""
        query = " ".join(found.query.split())
        return Visit(self.name, query, query) if query else "the query is empty"
