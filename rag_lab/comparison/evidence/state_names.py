"""What the states of evidence are called where people read them, and sentences on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rag_lab._kit.wording import counted, listing
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.evidence.fate import State
from rag_lab.comparison.evidence.waterfall import Waterfall

NOTHING = "No question of this run has labelled evidence, so it cannot be told where evidence is lost."


class StateName(NamedTuple):
    """A state in a table, in a bar, and what it means."""

    name: str
    short: str
    meaning: str


_NAMES: dict[State, StateName] = {
    "not_indexed": StateName("not indexed", "not indexed", "no passage of the index holds it"),
    "not_found": StateName("not found", "not found", "no search has it among its hits"),
    "merging": StateName("lost in merging", "merging", "a search found it, and fusing or merging left it out"),
    "reranking": StateName("lost in reranking", "reranking", "the reranker put it below what is read, or left it out"),
    "selection": StateName("lost in selection", "selection", "the selection put it below what is read, or left it out"),
    "budget": StateName(
        "lost in the budget", "budget", "it stood below the first `final_k`, or did not fit their tokens"
    ),
    "not_answered": StateName("read and not answered", "no answer", "it reached the reader, and there is no answer"),
    "unused": StateName("read and unused", "unused", "the answer cites no passage that holds it"),
    "used": StateName("used", "used", "the answer cites a passage that holds it"),
}
_EITHER = StateName("not found or not indexed", "not found", "no search has it among its hits; the index may lack it")


def state_names(found: Waterfall) -> Mapping[State, StateName]:
    """Return the names of the states in which pieces of a run ended, in the order of the pipeline."""
    names: dict[State, StateName] = {**_NAMES, "not_found": _EITHER if found.unrecorded else _NAMES["not_found"]}
    return {state: names[state] for state in found.states}


def evidence_told(comparison: Comparison) -> list[str]:
    """Return what is to be known beside the tables: how much is counted, and what the run did not record."""
    if comparison.evidence.is_empty:
        return [NOTHING]
    return [_counted(comparison), *_unrecorded(comparison), *_cut(comparison)]


def baseline_told(comparison: Comparison) -> list[str]:
    """Return one sentence on the baseline, or the first variant that was run; none where nothing is labelled."""
    found = comparison.evidence
    if found.is_empty:
        return []
    row = found.by_variant.to_dict("records")[0]
    parts = [f"{name.name} {row[state]:,}" for state, name in state_names(found).items() if row[state]]
    pieces = counted(row["items"], "labelled piece")
    return [f"Of {pieces} of evidence under {comparison.name(row['variant_id'])}: {listing(parts)}."]


def _counted(comparison: Comparison) -> str:
    items = comparison.evidence.items
    first = items[items["variant_id"] == items["variant_id"].iloc[0]]
    repeats = f", each in {comparison.run.repeats} repeats" if comparison.run.repeats > 1 else ""
    questions = counted(first["question_id"].nunique(), "question")
    return f"{counted(len(first), 'labelled piece')} of evidence of {questions}{repeats}; each ends in one place."


def _cut(comparison: Comparison) -> list[str]:
    """Say which budget was short: the tokens, or the number of passages."""
    found = comparison.evidence.cut
    if not found:
        return []
    told = listing([f"{comparison.codes[name]} {cut:,} of {lost:,}" for name, (cut, lost) in found.items()])
    return [
        f"Of what was lost in the budget, {told} stood among the first `rerank.final_k` passages and did not fit "
        "what the context may hold (`answer.context_tokens`); the rest stood below them."
    ]


def _unrecorded(comparison: Comparison) -> list[str]:
    found = comparison.evidence
    if not found.unrecorded:
        return []
    every = set(found.unrecorded) == set(found.by_variant["variant_id"])
    where = "by this run" if every else f"for {listing([comparison.codes[name] for name in found.unrecorded])}"
    return [
        f"What the index holds was not recorded {where}, so what was not found may be missing from it; a new run "
        "records it."
    ]
