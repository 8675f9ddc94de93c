"""The cheapest variant that is shown to be not worse than the best by more than the margin, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_lab._kit.numbers import number, p_text, with_interval
from rag_lab._kit.wording import counted
from rag_lab.comparison.advice.choices import Choices
from rag_lab.comparison.advice.gained import gained
from rag_lab.comparison.advice.price import surplus
from rag_lab.runs.margins import post_hoc_told


@dataclass(frozen=True, slots=True)
class ByMargin:
    """The variant, what to do in a sentence, and what that rests on, a sentence each."""

    variant_id: str
    headline: str
    rests_on: tuple[str, ...]


def by_margin(choices: Choices) -> ByMargin | None:
    """Return what the margin of the main metric recommends; None without one, or where no variant is shown to be so."""
    comparison = choices.comparison
    rows = {str(row["variant_id"]): row for row in comparison.not_worse_than_best.to_dict("records")}
    shown = choices.cheapest_first([variant for variant, row in rows.items() if row["is_not_worse"]])
    if not shown:
        return None
    chosen = shown[0]
    name = "the baseline" if chosen == comparison.run.baseline else comparison.called(chosen)
    headline = f"Use {name}: {_why(choices, chosen, len(shown), rows[chosen]['margin'])}."
    late = post_hoc_told(comparison.run)
    told = (_proof(choices, rows[chosen], len(rows)), *_saved(choices, chosen), *([late] if late else []))
    return ByMargin(chosen, headline, told)


def _why(choices: Choices, chosen: str, n_shown: int, margin: float) -> str:
    """Say what the variant gains, where it is reliably better than the reference, and that it is good enough."""
    near = f"not worse than the best variant by more than {margin:g}"
    if chosen in choices.better:
        which = f"the cheapest of the {n_shown}" if n_shown > 1 else "the only variant"
        return f"{gained(choices, chosen)} and is {which} shown to be {near}"
    which = f"the cheapest of the {n_shown} shown to be so" if n_shown > 1 else "the only one shown to be so"
    return f"it is {near} in {choices.comparison.directed(choices.metric)}, and {which}"


def _proof(choices: Choices, row: Mapping[Any, Any], n_candidates: int) -> str:
    failed = int(row["n_failed"])
    lost = f", {failed} of them failed and counted against it" if failed else ""
    least = choices.comparison.called(str(row["against"]))
    others = f"each of the {n_candidates - 1} other variants, least clearly {least}" if n_candidates > 2 else least
    return (
        f"The margin holds against {others} (margin {row['margin']:g}; one-sided corrected p "
        f"{p_text(row['p_corrected'])}; {counted(int(row['n']), 'question')}{lost})."
    )


def _saved(choices: Choices, chosen: str) -> list[str]:
    """Say what the variant takes beside the one with the best mean, and beside the baseline."""
    comparison, best = choices.comparison, choices.best
    others = {best: f"{comparison.called(best)}, which has the best mean,", comparison.run.baseline: "the baseline"}
    told = [
        f"Against {name} it {surplus(comparison.prices, chosen, other).sentence}{_differs(choices, chosen, other)}."
        for other, name in others.items()
        if other != chosen
    ]
    return told if best != chosen else [*told, "No other variant has a better mean."]


def _differs(choices: Choices, chosen: str, other: str) -> str:
    """Say how the scores of two variants differ, where they were compared."""
    row = choices.comparison.pair(chosen, other, choices.metric)
    if row is None or number(row["low"]) is None:
        return ""
    is_found = row["verdict"] in ("better", "worse")
    said = f"reliably {row['verdict']}" if is_found else "which the data cannot tell from chance"
    return f", at {with_interval(row['difference'], row['low'], row['high'])}, {said}"
