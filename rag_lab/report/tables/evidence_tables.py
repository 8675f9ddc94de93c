"""Where the labelled evidence ended, and what variants changed against the baseline, as tables."""

from typing import Any

from rag_lab._kit.wording import DASH, p_value, plain, seconds, short_verdict
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.evidence_sentences import state_names
from rag_lab.comparison.questions.passages import excerpt
from rag_lab.report.tables.table import Table

MOST = 10  # questions that changed most


def evidence_tables(comparison: Comparison) -> list[Table]:
    """Return how many labelled pieces ended in each state by variant, what moved, and the states by class."""
    found, name = comparison.evidence, comparison.name
    states = state_names(found)
    header = ("variant", "pieces", *(state.name for state in states.values()))

    def counts(row: dict[Any, Any]) -> tuple[str, ...]:
        return (name(row["variant_id"]), *(f"{row[column]:,}" for column in ("items", *found.states)))

    by_variant = tuple(counts(row) for row in found.by_variant.to_dict("records"))
    by_class = tuple((row["query_class"], *counts(row)) for row in found.by_class.to_dict("records"))
    moved = tuple(
        (name(row["variant_id"]), states[row["before"]].name, states[row["after"]].name, f"{row['items']:,}")
        for row in found.moved.to_dict("records")
    )
    moves = ("variant", "under the baseline", "under the variant", "pieces")
    return [
        Table("Where evidence is lost", header, by_variant),
        Table("Evidence that ended elsewhere than under the baseline", moves, moved, names=3),
        Table("Where evidence is lost, by query class", ("class", *header), by_class, names=2),
    ]


def change_tables(comparison: Comparison) -> list[Table]:
    """Return what each variant changes and takes, and the questions that changed most, with who changed each most."""
    changes = comparison.changes
    has_costs = any(one.cost_usd for one in changes.variants)
    header = (
        "variant", "rankings changed", "RBO", f"top {changes.k} shared", "answers changed", "their words changed",
        "abstained", "citations valid", "seconds (median)", "tokens", *(["USD"] if has_costs else []),
    )  # fmt: skip
    rows = []
    for one in changes.variants:
        is_baseline = one.variant_id == comparison.run.baseline
        row = (
            comparison.name(one.variant_id),
            "the baseline" if is_baseline else _of(one.rankings_changed, one.rankings),
            plain(one.overlap) + (" by page" if one.by_page else ""),
            _percent(one.shared),
            DASH if is_baseline else _of(one.answers_changed, one.answers),
            _percent(one.words),
            _of(one.abstained, one.answered),
            DASH if one.citations_valid is None else f"{one.citations_valid:.0%} of {one.cites}",
            seconds(one.seconds),
            DASH if one.tokens is None else f"{one.tokens:,.0f}",
            DASH if not one.cost_usd else f"{one.cost_usd:.4f}",
        )
        rows.append(row[: len(header)])
    most = tuple(
        (
            one.question_id,
            excerpt(comparison.asked[one.question_id].text),
            comparison.name(one.variant_id),
            plain(one.overlap),
            _percent(one.answer),
        )
        for one in changes.most[:MOST]
    )
    most_header = ("question", "text", "changed most by", "RBO", "words of the answer")
    return [
        Table("What changed against the baseline", header, tuple(rows)),
        Table("The questions that changed most", most_header, most, names=3),
    ]


def preferences_table(comparison: Comparison) -> Table:
    """Return a row a pair of variants that a person judged without seeing their names."""
    header = (
        "variant", "against", "questions judged", "preferred", "neither", "the other", "share of the decided",
        "95% interval", "p", "skipped", "verdict",
    )  # fmt: skip
    rows = tuple(
        (
            comparison.name(one.variant_id),
            comparison.name(one.against),
            str(one.difference.n),
            str(one.difference.wins),
            str(one.difference.ties),
            str(one.difference.losses),
            _percent(one.share),
            f"{one.interval[0]:.0%} to {one.interval[1]:.0%}" if one.interval else DASH,
            p_value(one.answer.p_value),
            str(one.skipped),
            short_verdict(one.answer.verdict),
        )
        for one in comparison.preferences
    )
    return Table("Preferred by a person who saw no names", header, rows, names=2, words=1)


def _of(n: int, total: int) -> str:
    return f"{n} of {total}" if total else DASH


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{share:.0%}"
