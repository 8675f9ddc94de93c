"""The cheapest variant that is shown to be not worse than the best by more than the margin, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab._kit.wording import counted, p_text
from rag_lab.comparison.advice.choices import Choices
from rag_lab.comparison.advice.price import surplus
from rag_lab.comparison.advice.reasons import gained


def by_margin(choices: Choices) -> tuple[str, str, list[str]] | None:
    """Return what the margin of the main metric recommends: the variant, what to do in a sentence, what that rests on.

    None without a margin, or where no variant is shown to be near the best by it. What costs more than the reference
    and is not reliably better is not recommended by its margin alone.
    """
    comparison, shown = choices.comparison, choices.near_best
    if not shown or (choices.surplus(shown[0]).is_costing and shown[0] not in choices.better):
        return None
    chosen, rows = shown[0], comparison.not_worse_than_best.to_dict("records")
    row = next(row for row in rows if row["variant_id"] == chosen)
    name = "the baseline" if chosen == comparison.run.baseline else comparison.called(chosen)
    headline = f"Use {name}: {_why(choices, chosen, row['margin'])}."
    return chosen, headline, [_proof(choices, row, len(rows)), *_saved(choices, chosen)]


def _why(choices: Choices, chosen: str, margin: float) -> str:
    """Say what the variant gains, where it is reliably better than the reference, and that it is good enough."""
    metric = choices.comparison.directed(choices.metric)
    gains = f"{gained(choices, chosen)}; " if chosen in choices.better else ""
    if chosen == choices.best:
        start = gains or f"it has the best mean in {metric}, and "
        return f"{start}no cheaper variant is shown to be within {margin:g} of it"
    where = "" if gains else f" in {metric}"
    near = f"it is not worse than the best variant by more than {margin:g}{where}"
    return f"{gains}{near}; no cheaper one is shown to be so"


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
    """Say what the variant takes beside the one with the best mean, and beside the baseline, where that is not said."""
    comparison, best = choices.comparison, choices.best
    others = {best: f"{comparison.called(best)}, which has the best mean,"}
    if chosen not in choices.better:
        others[comparison.run.baseline] = "the baseline"
    return [
        f"Against {name} it {surplus(comparison.prices, chosen, other).sentence}."
        for other, name in others.items()
        if other != chosen
    ]
