"""Where the labelled evidence ended, and what variants changed against the baseline, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_lab._kit.wording import DASH, p_value, plain, seconds, short_verdict
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.evidence_sentences import state_names
from rag_lab.comparison.questions.passages import excerpt
from rag_lab.comparison.questions.preferences import Preferred
from rag_lab.comparison.tables.changes import QuestionChange, VariantChange
from rag_lab.report.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd


def evidence_tables(comparison: Comparison) -> list[Table]:
    """Return the counts by variant, what moved against the baseline, and the counts by class."""
    return [evidence_table(comparison), moved_table(comparison), evidence_by_class_table(comparison)]


def evidence_table(comparison: Comparison) -> Table:
    """Return a row a variant: how many labelled pieces of evidence ended in each state."""
    rows = tuple((comparison.name(row["variant_id"]), *_counts(comparison, row)) for row in _records(comparison, ""))
    return Table("Where evidence is lost", ("variant", *_header(comparison)), rows)


def evidence_by_class_table(comparison: Comparison) -> Table:
    """Return the same for each query class."""
    rows = tuple(
        (row["query_class"], comparison.name(row["variant_id"]), *_counts(comparison, row))
        for row in _records(comparison, "query_class")
    )
    return Table("Where evidence is lost, by query class", ("class", "variant", *_header(comparison)), rows, names=2)


def moved_table(comparison: Comparison) -> Table:
    """Return a row a variant and a move: where pieces ended under the baseline, and where under the variant."""
    found = comparison.evidence
    names = state_names(found)
    rows = tuple(
        (comparison.name(row["variant_id"]), names[row["before"]].name, names[row["after"]].name, f"{row['items']:,}")
        for row in found.moved.to_dict("records")
    )
    header = ("variant", "under the baseline", "under the variant", "pieces")
    return Table("Evidence that ended elsewhere than under the baseline", header, rows, names=3)


def _header(comparison: Comparison) -> tuple[str, ...]:
    return ("pieces", *(name.name for name in state_names(comparison.evidence).values()))


def _records(comparison: Comparison, group: str) -> list[dict[Any, Any]]:
    table: pd.DataFrame = comparison.evidence.by_class if group else comparison.evidence.by_variant
    return table.to_dict("records")


def _counts(comparison: Comparison, row: dict[Any, Any]) -> tuple[str, ...]:
    return tuple(f"{row[name]:,}" for name in ("items", *comparison.evidence.states))


MOST = 10  # questions in the second table


def changes_table(comparison: Comparison) -> Table:
    """Return a row a variant: what it changes, and what it takes."""
    changes = comparison.changes
    costs = any(one.cost_usd for one in changes.variants)
    header = (
        "variant", "rankings changed", "RBO", f"top {changes.k} shared", "answers changed", "their words changed",
        "abstained", "citations valid", "seconds (median)", "tokens", *(["USD"] if costs else []),
    )  # fmt: skip
    rows = tuple(_variant(comparison, one)[: len(header)] for one in changes.variants)
    return Table("What changed against the baseline", header, rows)


def changed_most_table(comparison: Comparison) -> Table:
    """Return a row for each of the questions that changed most, with the variant that changed it most."""
    rows = tuple(_question(comparison, one) for one in comparison.changes.most[:MOST])
    header = ("question", "text", "changed most by", "RBO", "words of the answer")
    return Table("The questions that changed most", header, rows, names=3)


def preferences_table(comparison: Comparison) -> Table:
    """Return a row a pair of variants that a person judged without seeing their names."""
    header = (
        "variant", "against", "questions judged", "preferred", "neither", "the other", "share of the decided",
        "95% interval", "p", "skipped", "verdict",
    )  # fmt: skip
    rows = tuple(_preferred(comparison, one) for one in comparison.preferences)
    return Table("Preferred by a person who saw no names", header, rows, names=2, words=1)


def _preferred(comparison: Comparison, one: Preferred) -> tuple[str, ...]:
    found = one.difference
    return (
        comparison.name(one.variant_id),
        comparison.name(one.against),
        str(found.n),
        str(found.wins),
        str(found.ties),
        str(found.losses),
        DASH if one.share is None else f"{one.share:.0%}",
        f"{one.interval[0]:.0%} to {one.interval[1]:.0%}" if one.interval else DASH,
        p_value(one.answer.p_value),
        str(one.skipped),
        short_verdict(one.verdict),
    )


def _variant(comparison: Comparison, one: VariantChange) -> tuple[str, ...]:
    is_baseline = one.variant_id == comparison.run.baseline
    return (
        comparison.name(one.variant_id),
        "the baseline" if is_baseline else _of(one.rankings_changed, one.rankings),
        plain(one.overlap) + (" by page" if one.by_page else ""),
        DASH if one.shared is None else f"{one.shared:.0%}",
        DASH if is_baseline else _of(one.answers_changed, one.answers),
        DASH if one.words is None else f"{one.words:.0%}",
        _of(one.abstained, one.answered),
        DASH if one.citations_valid is None else f"{one.citations_valid:.0%} of {one.cites}",
        seconds(one.seconds),
        DASH if one.tokens is None else f"{one.tokens:,.0f}",
        DASH if not one.cost_usd else f"{one.cost_usd:.4f}",
    )


def _of(n: int, total: int) -> str:
    return f"{n} of {total}" if total else DASH


def _question(comparison: Comparison, one: QuestionChange) -> tuple[str, ...]:
    return (
        one.question_id,
        excerpt(comparison.asked[one.question_id].text),
        comparison.name(one.variant_id),
        plain(one.overlap),
        DASH if one.answer is None else f"{one.answer:.0%}",
    )
