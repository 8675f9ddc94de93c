"""Where evidence is lost: what became of each labelled piece under each variant, by the lists that its stages left.

The hits of the searches are fused and merged to the candidates. From there on there are orders, of which the reader
takes the first `final_k` within its budget: a stage after merging loses what it puts below them, or leaves out, and
that stood among them before. What stands among the first of no order is lost in that budget: a longer one reaches it.
A stage that failed has lost what came to it.
"""

import math
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import pandas as pd

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.data.labels import distinct
from rag_lab.evaluation.retrieval import Part, covers, first_ranks
from rag_lab.records import QUERY_CLASSES, Evidence, Hit, Passage, Question, Span, Trace
from rag_lab.runs.omissions import NOT_INDEXED
from rag_lab.stages.stage import OFF

State = Literal[
    "not_indexed", "not_found", "merging", "reranking", "selection", "budget", "not_answered", "unused", "used"
]
STATES: tuple[State, ...] = get_args(State)  # in the order of the pipeline

_FAILED_AT: dict[str, State] = {"rerank": "reranking", "select": "selection"}
NO_CLASS = "no class"
_ITEM = ["question_id", "repeat", "item"]


def fates(trace: Trace, final_k: int | None, not_indexed: Collection[int] = ()) -> list[State]:
    """Return where each evidence item of the trace's question ended, in order; labels of one passage are one item.

    `not_answered` is what reached the reader of a question that has no answer, as where none was asked for; no context
    was assembled then, perhaps, and all of the first `final_k` count as read. `final_k` is None where it is not known,
    which is taken for all; `not_indexed` are the places (from 0) of the items that no passage of the index covers.
    """
    items = distinct(trace.question.evidence)
    k = sys.maxsize if final_k is None else final_k
    orders: list[tuple[State, list[float]]] = [("merging", _ranks(trace.candidates, items))]
    if trace.reranked:
        orders.append(("reranking", _ranks(trace.reranked, items)))
    selects = any(record.stage == "select" and record.reason != OFF for record in trace.stages)
    orders.append(("selection" if trace.reranked or selects else "reranking", _ranks(trace.ranked, items)))
    states = []
    for place, item in enumerate(items):
        ranks = [(stage, of_items[place]) for stage, of_items in orders]
        states.append(_state(trace, item, ranks, k, "not_indexed" if place in not_indexed else "not_found"))
    return states


def _state(
    trace: Trace, item: Evidence, ranks: Sequence[tuple[State, float]], final_k: int, not_searched: State
) -> State:
    """Return where an item ended; `ranks` are those of it in each order, with the stage that made the order."""
    if _is_covered(trace.passages, item):
        if trace.answer is None:
            return "not_answered"
        numbers = {citation.number for citation in trace.answer.citations}
        cited = [passage for passage in trace.passages if passage.number in numbers]
        return "used" if _is_covered(cited, item) else "unused"
    if all(rank == math.inf for _, rank in ranks):
        searches = (*trace.hits.values(), trace.base_hits)
        return "merging" if any(_is_covered(hits, item) for hits in searches) else not_searched
    has_context = trace.answer is not None or any(record.stage == "context" for record in trace.stages)
    if trace.failure is not None and not has_context:
        return _FAILED_AT.get(trace.failure.stage, "budget" if trace.ranked else "reranking")
    if ranks[-1][1] <= final_k:
        return "budget" if has_context else "not_answered"
    for (_, before), (stage, after) in pairwise(ranks):
        if before <= final_k < after:
            return stage
    return "budget"


def _ranks(hits: Sequence[Hit], items: Sequence[Evidence]) -> list[float]:
    return [math.inf if rank is None else rank for rank in first_ranks(hits, items)]


def _is_covered(places: Iterable[Hit | Passage | Part], item: Evidence) -> bool:
    return any(covers(place, item) for place in places)


@dataclass(frozen=True)
class Waterfall:
    """Each labelled piece of evidence of each question, in each repeat, ends in one state under each variant.

    items: variant_id, question_id, repeat, item (its place among the question's, from 0), query_class, state, and
        whether it was `cut`: lost in the budget though it stood among the first `final_k`. The baseline's first.
    asks_reader: whether any variant was to answer; where none was, `not_answered` is as far as a piece can come.
    """

    baseline: str
    items: pd.DataFrame = field(repr=False)
    asks_reader: bool = True

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The states in which any piece ended, in the order of the pipeline."""
        found = set(self.items["state"])
        return tuple(state for state in STATES if state in found)

    @cached_property
    def by_variant(self) -> pd.DataFrame:
        """A row a variant: variant_id, items, and how many ended in each state."""
        return _counts(self.items, ["variant_id"])

    @cached_property
    def by_class(self) -> pd.DataFrame:
        """A row a query class and variant, as `by_variant`; none where the dataset labels no class."""
        is_labelled = bool((self.items["query_class"] != NO_CLASS).any())
        counts = _counts(self.items if is_labelled else self.items[:0], ["query_class", "variant_id"])
        place = {name: number for number, name in enumerate((*QUERY_CLASSES, NO_CLASS))}
        return counts.sort_values("query_class", key=lambda names: names.map(place), kind="stable", ignore_index=True)

    @cached_property
    def cut(self) -> dict[str, tuple[int, int]]:
        """By variant, of how many pieces that were lost in the budget how many were cut; those without any left out."""
        lost = self.items[self.items["state"] == "budget"].groupby("variant_id", sort=False)["cut"]
        return {str(name): (int(cut.sum()), len(cut)) for name, cut in lost}

    @cached_property
    def moved(self) -> pd.DataFrame:
        """What ended elsewhere than under the baseline: variant_id, before, after, items; the most first."""
        is_base = self.items["variant_id"] == self.baseline
        columns = [*_ITEM, "n", "state"]
        counted = self.items.assign(n=self.items.groupby(["variant_id", *_ITEM[:2]])["item"].transform("size"))
        before = counted.loc[is_base, columns]
        both = counted[~is_base].merge(before, on=[*_ITEM, "n"], suffixes=("", "_before"))
        both = both[both["state"] != both["state_before"]]
        groups = both.groupby(["variant_id", "state_before", "state"], sort=False).size().reset_index(name="items")
        found = groups.rename(columns={"state_before": "before", "state": "after"})
        # Ties stand in the order of the pipeline, whatever that of the rows.
        place = {variant: number for number, variant in enumerate(self.items["variant_id"].unique())}
        rank = {state: number for number, state in enumerate(STATES)}
        keys = pd.DataFrame(
            {
                "variant": found["variant_id"].map(place),
                "items": -found["items"],
                "before": found["before"].map(rank),
                "after": found["after"].map(rank),
            }
        )
        return found.loc[keys.sort_values([*keys.columns]).index].reset_index(drop=True)

    @cached_property
    def by_question(self) -> dict[tuple[str, str], frozenset[State]]:
        """The states in which the pieces of a question ended under a variant, by their ids."""
        found: dict[tuple[str, str], set[State]] = {}
        columns = (self.items[name].tolist() for name in ("question_id", "variant_id", "state"))
        for question_id, variant_id, state in zip(*columns, strict=True):
            found.setdefault((question_id, variant_id), set()).add(state)
        return {key: frozenset(states) for key, states in found.items()}


def waterfall(tables: RunTables) -> Waterfall:
    """Return what became of the evidence under each variant that was run, from its traces alone."""
    rows, asks_reader = [], False
    for variant_id, traces in tables.traces.items():
        config, missing = tables.pipelines.get(variant_id), tables.run.recorded(variant_id, *NOT_INDEXED) or {}
        final_k = None if config is None else config.rerank.final_k
        asks_reader |= config is None or config.answer.is_on
        for trace in traces:
            name, group = trace.question.question_id, trace.question.query_class or NO_CLASS
            states = fates(trace, final_k, missing.get(name, ()))
            items = distinct(trace.question.evidence) if "budget" in states else ()
            ranks = _ranks(trace.ranked, items)
            for place, state in enumerate(states):
                # Cut where it stood among the first `final_k` in the end: the context could have held it.
                is_cut = state == "budget" and ranks[place] <= (sys.maxsize if final_k is None else final_k)
                rows.append((variant_id, name, trace.repeat, place, group, state, is_cut))
    every = pd.DataFrame(rows, columns=["variant_id", *_ITEM, "query_class", "state", "cut"])
    return Waterfall(tables.run.baseline, every, asks_reader)


def _counts(items: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the items and the states by groups, in the order of their first appearance."""
    groups = items.groupby(by, sort=False)["state"]
    counts = groups.value_counts().unstack(fill_value=0).reindex(columns=list(STATES), fill_value=0)
    counts = counts.reindex(groups.size().index)
    counts.insert(0, "items", counts.sum(axis=1))
    counts.columns.name = None
    return counts.reset_index()


def unindexed(spans: Iterable[Span], questions: Sequence[Question]) -> dict[str, list[int]]:
    """Return the places (from 0) of the evidence of each question that no passage covers; other questions stand not.

    Labels of one passage are one, and have one place. `spans` are those of the passages of the index; in it the
    evidence of `questions` is located.
    """
    wanted = {source for question in questions for one in question.evidence for source in (one.source, *one.copies)}
    parts: dict[str, list[Part]] = {}
    for span in spans:
        if span[0] in wanted:
            parts.setdefault(span[0], []).append(Part(*span))
    found: dict[str, list[int]] = {}
    for question in questions:
        for place, one in enumerate(distinct(question.evidence)):
            in_index = (part for source in (one.source, *one.copies) for part in parts.get(source, ()))
            if not _is_covered(in_index, one):
                found.setdefault(question.question_id, []).append(place)
    return found
