"""A model that searches by itself: it writes `<search>…</search>` until it answers.

Jin et al. 2025, "Search-R1: training LLMs to reason and leverage search engines", section 3. For models that can.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.records import Answer, Trace, Visit
from rag_lab.stages.agent import prompts
from rag_lab.stages.agent.agent import STATE, Agent, State
from rag_lab.stages.agent.search_tool import ALL
from rag_lab.stages.generate import checked_citations, is_abstention, without_loop
from rag_lab.stages.stage import ChatStage, Outcome, chat_outcome, nothing_written, written

_SEARCH = re.compile(r"<search>(.*?)(?:</search>|$)", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|$)", re.DOTALL)
_NUMBERS = re.compile(r"\[(\d{1,9})\]")
_TOKENS = 400  # of a turn


@dataclass(frozen=True)
class SelfSearch(Agent):
    """At most `limits.searches` searches; what the model writes without one is its answer."""

    VERSION = prompts.VERSION
    LIMITS = ("results", "searches")

    def nodes(self) -> dict[str, Callable[[State], State]]:
        """Return the model's turn, and the search that it asks for."""
        return {
            "write": self._write,
            "search": self._search,
            "generate": lambda state: self.generate({**state, "next": ""}),
        }

    def most_nodes(self) -> int:
        """Return the searches, each after a turn, the last turn, and an answer in its place."""
        return 2 * self.limits.searches + 2

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

    VERSION = prompts.VERSION
    name = "write"
    reads = STATE
    writes = ("visits", "answer", "prompt", "raw_text")

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one state."""
        return [ChatRequest(prompts.self_search_messages(trace), _TOKENS, seed=self.seed + trace.repeat)]

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
