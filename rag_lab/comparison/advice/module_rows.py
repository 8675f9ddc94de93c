"""One row a module: what it does to the main metric, what can be said of that in a word, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag_lab._kit.numbers import number, p_text
from rag_lab._kit.wording import short_verdict
from rag_lab.comparison.advice.price import Price, average, surplus
from rag_lab.comparison.comparison import Comparison
from rag_lab.statistics.effects.factors import factor_values
from rag_lab.statistics.verdict import NO_DIFFERENCE

Word = Literal["better", "worse", "undecided", "no difference", "not measured", "failed", "stopped", "not run"]
_ORDER: tuple[Word, ...] = ("better", "undecided", "no difference", "worse")  # all others come after


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """What one change does to the main metric.

    name: the level of a factor, or the label of a variant.
    variant_id: of the variant that is set against the baseline; empty for a main effect, which is that of several.
    factor, level, against: of a main effect, and the level that it is compared with; empty for a variant.
    n: questions that it stands on.
    effect, low, high: difference of the main metric and its 95% interval; None where that cannot be told.
    word: what the statistics say of it.
    why: what qualifies the word, or the reason why there is no effect; else empty.
    price: how much more a question takes.
    """

    name: str
    variant_id: str
    n: int
    effect: float | None
    low: float | None
    high: float | None
    word: Word
    why: str
    price: Price
    factor: str = ""
    level: str = ""
    against: str = ""


def module_rows(comparison: Comparison) -> list[ModuleRow]:
    """Return the main effects of a grid, or else every variant but the baseline: the best first, those unscored last.

    They are empty without a quality metric.
    """
    metric = comparison.main_metric
    if metric is None:
        return []
    if comparison.effects.is_grid:
        rows = _main_effects(comparison, metric)
    else:
        rows = [_variant(comparison, plan.variant_id, metric) for plan in comparison.variants[1:]]
    sign = _sign(comparison, metric)
    return sorted(rows, key=lambda row: (_place(row.word), -sign * (row.effect or 0.0)))


def unmoved(comparison: Comparison, variant: str, metric: str) -> str:
    """Return the fields that a metric reads where a variant leaves them all as the baseline has them, else "".

    A metric that reads nothing that a change touches is blind to it; that all scores are equal is then no finding.
    """
    info = comparison.run.metric(metric)
    ours, theirs = comparison.traces.get(variant, []), comparison.traces.get(comparison.run.baseline, [])
    if info is None or info.is_cost or not info.reads or len(ours) != len(theirs):
        return ""
    names = sorted(info.reads)
    is_same = all(getattr(a, name) == getattr(b, name) for a, b in zip(ours, theirs, strict=True) for name in names)
    return " and ".join({"ranked": "ranking"}.get(name, name) for name in names) if is_same else ""


def _place(word: Word) -> int:
    return _ORDER.index(word) if word in _ORDER else len(_ORDER)


def _variant(comparison: Comparison, variant: str, metric: str) -> ModuleRow:
    row = comparison.difference(variant, metric)
    price = surplus(comparison.prices, variant, comparison.run.baseline)
    label = comparison.label(variant)
    if row is None:
        word, why = _without(comparison, variant)
        return ModuleRow(label, variant, 0, None, None, None, word, why, price)
    word, why = _word(row, row["difference"], _sign(comparison, metric))
    if word == "no difference" and (fields := unmoved(comparison, variant, metric)):
        why = f"the metric is blind to it: it reads the {fields}"
    ends = (number(row["difference"]), number(row["low"]), number(row["high"]))
    return ModuleRow(label, variant, int(row["n"]), *ends, word, why, price)


def _main_effects(comparison: Comparison, metric: str) -> list[ModuleRow]:
    table, costs = comparison.effects.table, comparison.prices
    values = factor_values({plan.variant_id: plan.changes for plan in comparison.variants}, comparison.baseline_values)
    scored = {variant: levels for variant, levels in values.items() if variant in costs}
    rows = []
    for row in table[(table["metric"] == metric) & (table["kind"] == "main")].to_dict("records"):
        factor, level, first = str(row["factor"]), str(row["level"]), str(row["first"])
        ours, theirs = ([v for v, levels in scored.items() if levels[factor] == one] for one in (level, first))
        price = average(costs, ours).minus(average(costs, theirs)) if ours and theirs else Price()
        ends = (number(row["effect"]), number(row["low"]), number(row["high"]))
        name, said = f"{factor} = {level}", _word(row, row["effect"], _sign(comparison, metric))
        rows.append(ModuleRow(name, "", int(row["n"]), *ends, *said, price, factor, level, first))
    return rows


def _sign(comparison: Comparison, metric: str) -> int:
    return comparison.scales[metric].sign if metric in comparison.scales else 1


def _word(row: Mapping[Any, Any], effect: Any, sign: int) -> tuple[Word, str]:
    """Return the verdict in a word, and what qualifies it; more is better where `sign` is 1."""
    verdict = str(row["verdict"])
    if verdict in ("better", "worse"):
        return ("better" if verdict == "better" else "worse"), ""
    if not int(row["n"]):
        return "not measured", verdict
    if verdict.startswith(NO_DIFFERENCE):
        return "no difference", f"on any of the {int(row['n'])} questions"
    if number(row["low"]) is None:
        return "undecided", short_verdict(verdict)
    doubt = str(row["doubt"] or "")
    if doubt.startswith("among "):
        side = "better" if sign * effect > 0 else "worse"
        doubt = f"alone it would count as {side}; corrected p {p_text(row['p_corrected'])}"
    return "undecided", doubt


def _without(comparison: Comparison, variant: str) -> tuple[Word, str]:
    """Return why a variant has no difference from the baseline."""
    state = comparison.state(variant)
    if state == "failed" or state == "stopped":
        return ("failed" if state == "failed" else "stopped"), comparison.failed[variant]
    if variant not in set(comparison.summary["variant_id"]):
        return ("not measured" if state == "ok" else "not run"), "it has no scores"
    return "not measured", "the baseline has no scores to compare with"
