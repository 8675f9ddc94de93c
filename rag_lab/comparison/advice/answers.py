"""What becomes of the answers under a variant, and where it loses most of the evidence: the lines below the first."""

from __future__ import annotations

from typing import Any

from rag_lab._kit.wording import counted, listing, number, plain, with_interval
from rag_lab.comparison.advice.set_apart import set_apart
from rag_lab.comparison.bounds.reachable_gain import answer_metrics
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.evidence.fate import State
from rag_lab.comparison.evidence.state_names import state_names

MUCH = 0.25  # of all labelled pieces: where one place loses less, no setting decides
_SETTINGS: dict[State, tuple[str, tuple[str, ...]]] = {
    "not_indexed": ("read these pages in another way", ("corpus.pdf",)),
    "not_found": ("search deeper, or in another way", ("retrieval.base_k", "retrieval.mode")),
    "merging": ("let more candidates through", ("rerank.input_limit",)),
    "reranking": ("try another reranker, or none", ("rerank.name",)),
    "selection": ("let more passages through", ("select.name",)),
    "budget": ("give the reader more passages", ("rerank.final_k",)),
    "unused": ("try another reader", ("answer.name",)),
}
_CUT = ("give the context more tokens", ("answer.context_tokens",))


def answers_told(comparison: Comparison, variant: str) -> list[str]:
    """Say what becomes of the answers of a variant against the baseline, where any were asked for."""
    told = [part for part in (_scored(comparison, variant), _used(comparison, variant)) if part]
    return [f"Answers: {'; '.join(told)}."] if told and comparison.run.answered else []


def _scored(comparison: Comparison, variant: str) -> str:
    """Return what the first metric that reads answers says, where it is not the one that decides; else ""."""
    apart = set_apart(comparison)
    metrics = [one for one in answer_metrics(comparison) if one not in apart]
    if not metrics or metrics[0] == comparison.main_metric:
        return ""
    row, cell = comparison.difference(variant, metrics[0]), comparison.cell(variant, metrics[0])
    if row is None or number(row["difference"]) is None:
        return f"{comparison.directed(metrics[0])} {plain(cell['mean'])}" if cell else ""
    word = row["verdict"] if row["verdict"] in ("better", "worse") else "the data cannot tell"
    seen = with_interval(row["difference"], row["low"], row["high"])
    return f"{comparison.directed(metrics[0])} {seen} against the baseline: {word}"


def _used(comparison: Comparison, variant: str) -> str:
    pieces = _pieces(comparison)
    if variant not in pieces:
        return ""
    ours, base = pieces[variant], pieces.get(comparison.run.baseline)
    other = "" if base is None or variant == comparison.run.baseline else f", under the baseline {base['used']}"
    return f"they use {ours['used']} of {counted(ours['items'], 'labelled piece')} of evidence{other}"


def largest_loss(comparison: Comparison, variant: str) -> list[str]:
    """Name the place that loses most of the evidence under a variant, if much, and the setting that decides it."""
    row, config = _pieces(comparison).get(variant), comparison.pipelines.get(variant)
    if row is None or config is None:
        return []
    state = max(_SETTINGS, key=lambda one: row[one])
    if row[state] < MUCH * row["items"] or not row[state]:
        return []
    cut, lost = comparison.evidence.cut.get(variant, (0, 0))
    what, keys = _CUT if state == "budget" and 2 * cut > lost else _SETTINGS[state]
    flat = config.flat()
    settings = listing([f"`{key}` ({flat[key]})" for key in keys])
    where = state_names(comparison.evidence)[state].name
    return [f"First, {what}: {settings}. {row[state]} of {row['items']} labelled pieces of evidence are {where}."]


def _pieces(comparison: Comparison) -> dict[Any, dict[Any, Any]]:
    """Return by variant how many labelled pieces of evidence there are, and how many ended in each state."""
    return comparison.evidence.by_variant.set_index("variant_id").to_dict("index")
