"""The evidence waterfall: under each variant, how many labelled pieces of evidence ended at each stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from rag_lab.comparison.evidence.fate import STATES, State, fates, in_reach
from rag_lab.comparison.run_tables import RunTables
from rag_lab.records import QUERY_CLASSES

NO_CLASS = "no class"
_ITEM = ["question_id", "repeat", "item"]


@dataclass(frozen=True)
class Waterfall:
    """Each labelled piece of evidence of each question, in each repeat, ends in one state under each variant.

    items: variant_id, question_id, repeat, item (its place among the question's, from 0), query_class, state, and
        whether it was `cut`: lost in the budget though it stood among the first `final_k`. The baseline's first.
    unrecorded: variants that did not record what their index holds: there `not_found` may be `not_indexed`.
    """

    baseline: str
    items: pd.DataFrame = field(repr=False)
    unrecorded: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no question that was asked has labelled evidence."""
        return self.items.empty

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
        return self._in_order(found)

    @cached_property
    def by_question(self) -> dict[tuple[str, str], frozenset[State]]:
        """The states in which the pieces of a question ended under a variant, by their ids."""
        found: dict[tuple[str, str], set[State]] = {}
        columns = (self.items[name].tolist() for name in ("question_id", "variant_id", "state"))
        for question_id, variant_id, state in zip(*columns, strict=True):
            found.setdefault((question_id, variant_id), set()).add(state)
        return {key: frozenset(states) for key, states in found.items()}

    def _in_order(self, moved: pd.DataFrame) -> pd.DataFrame:
        """Return the rows by variant, the most first; ties in the order of the pipeline, whatever that of the rows."""
        place = {variant: number for number, variant in enumerate(self.items["variant_id"].unique())}
        rank = {state: number for number, state in enumerate(STATES)}
        keys = pd.DataFrame(
            {
                "variant": moved["variant_id"].map(place),
                "items": -moved["items"],
                "before": moved["before"].map(rank),
                "after": moved["after"].map(rank),
            }
        )
        return moved.loc[keys.sort_values([*keys.columns]).index].reset_index(drop=True)


def waterfall(tables: RunTables) -> Waterfall:
    """Return what became of the evidence under each variant that was run, from its traces alone."""
    ran = [plan.variant_id for plan in tables.variants if tables.traces[plan.variant_id]]
    rows = [row for variant_id in ran for row in _items(tables, variant_id)]
    return Waterfall(
        tables.run.baseline,
        pd.DataFrame(rows, columns=["variant_id", *_ITEM, "query_class", "state", "cut"]),
        tuple(variant_id for variant_id in ran if tables.run.not_indexed(variant_id) is None),
    )


def _items(tables: RunTables, variant_id: str) -> Iterator[tuple[str, str, int, int, str, State, bool]]:
    config, missing = tables.run.config(variant_id), tables.run.not_indexed(variant_id) or {}
    final_k = None if config is None else config.rerank.final_k
    for trace in tables.traces[variant_id]:
        name, group = trace.question.question_id, trace.question.query_class or NO_CLASS
        states = fates(trace, final_k, missing.get(name, ()))
        reached = in_reach(trace, final_k) if "budget" in states else [False] * len(states)
        for place, state in enumerate(states):
            yield variant_id, name, trace.repeat, place, group, state, state == "budget" and reached[place]


def _counts(items: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the items and the states by groups, in the order of their first appearance."""
    groups = items.groupby(by, sort=False)["state"]
    counts = groups.value_counts().unstack(fill_value=0).reindex(columns=list(STATES), fill_value=0)
    counts = counts.reindex(groups.size().index)
    counts.insert(0, "items", counts.sum(axis=1))
    counts.columns.name = None
    return counts.reset_index()
