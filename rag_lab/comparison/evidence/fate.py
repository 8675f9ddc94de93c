"""What became of each piece of evidence of one question under one variant, by the lists that its stages left.

The hits of the searches are fused and merged to the candidates. From there on there are orders, of which the reader
takes the first `final_k` within its budget: a stage after merging loses what it puts below them, or leaves out, and
that stood among them before. What stands among the first of no order is lost in that budget: a longer one reaches it.
A stage that failed has lost what came to it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Literal, get_args

from rag_lab.data.evidence import distinct
from rag_lab.evaluation.measures.coverage import covers, first_ranks
from rag_lab.records import Evidence, Hit, Passage, Trace
from rag_lab.stages.stage import OFF

State = Literal[
    "not_indexed", "not_found", "merging", "reranking", "selection", "budget", "not_answered", "unused", "used"
]
STATES: tuple[State, ...] = get_args(State)  # in the order of the pipeline

_FAILED_AT: dict[str, State] = {"rerank": "reranking", "select": "selection"}


def fates(trace: Trace, final_k: int | None, not_indexed: Collection[int] = ()) -> list[State]:
    """Return where each evidence item of the trace's question ended, in order; labels of one passage are one item.

    `not_answered` is what reached the reader of a question that has no answer, as where none was asked for; no context
    was assembled then, perhaps, and all of the first `final_k` count as read.

    Args:
        trace: what the variant did.
        final_k: how many passages its reader takes; None where that is not known, which is taken for all.
        not_indexed: places (from 0) of the items that no passage of the index covers.
    """
    items = distinct(trace.question.evidence)
    found = _Found(trace, items, sys.maxsize if final_k is None else final_k)
    return [found.state(place, item, place in not_indexed) for place, item in enumerate(items)]


def in_reach(trace: Trace, final_k: int | None) -> list[bool]:
    """Tell of each item whether it stood among the first `final_k` in the end: what the context could have held."""
    ranks = _ranks(trace.ranked, distinct(trace.question.evidence))
    return [rank <= (sys.maxsize if final_k is None else final_k) for rank in ranks]


class _Found:
    """The lists of a trace, with the rank of each item in each order."""

    def __init__(self, trace: Trace, items: Sequence[Evidence], final_k: int) -> None:
        self._trace, self._final_k = trace, final_k
        self._orders = [(stage, _ranks(hits, items)) for stage, hits in _orders(trace)]
        self._has_context = trace.answer is not None or any(record.stage == "context" for record in trace.stages)
        numbers = {citation.number for citation in trace.answer.citations} if trace.answer else set()
        self._cited = [passage for passage in trace.passages if passage.number in numbers]

    def state(self, place: int, item: Evidence, is_missing: bool) -> State:
        if _covered(self._trace.passages, item):
            return self._read(item)
        ranks = [(stage, of_items[place]) for stage, of_items in self._orders]
        if all(rank == math.inf for _, rank in ranks):
            return self._before(item, is_missing)
        return self._after_merging(ranks)

    def _read(self, item: Evidence) -> State:
        if self._trace.answer is None:
            return "not_answered"
        return "used" if _covered(self._cited, item) else "unused"

    def _before(self, item: Evidence, is_missing: bool) -> State:
        """Return the state of what is in no order."""
        if any(_covered(hits, item) for hits in (*self._trace.hits.values(), self._trace.base_hits)):
            return "merging"
        return "not_indexed" if is_missing else "not_found"

    def _after_merging(self, ranks: Sequence[tuple[State, float]]) -> State:
        """Return the state of what is in an order and was not read; `ranks` names the stage that made each order."""
        failure = self._trace.failure
        if failure is not None and not self._has_context:
            return _FAILED_AT.get(failure.stage, "budget" if self._trace.ranked else "reranking")
        if ranks[-1][1] <= self._final_k:
            return "budget" if self._has_context else "not_answered"
        for (_, before), (stage, after) in pairwise(ranks):
            if before <= self._final_k < after:
                return stage
        return "budget"


def _orders(trace: Trace) -> Iterator[tuple[State, Sequence[Hit]]]:
    """Give the orders of a trace, each with the stage that loses what falls out of it."""
    yield "merging", trace.candidates
    if trace.reranked:
        yield "reranking", trace.reranked
    yield "selection" if trace.reranked or _selected(trace) else "reranking", trace.ranked


def _selected(trace: Trace) -> bool:
    """Tell whether a selection ran; a trace that was written before `Trace.reranked` says so in its records alone."""
    return any(record.stage == "select" and record.reason != OFF for record in trace.stages)


def _ranks(hits: Sequence[Hit], items: Sequence[Evidence]) -> list[float]:
    return [math.inf if rank is None else rank for rank in first_ranks(hits, items)]


def _covered(places: Sequence[Hit | Passage], item: Evidence) -> bool:
    return any(covers(place, item) for place in places)
