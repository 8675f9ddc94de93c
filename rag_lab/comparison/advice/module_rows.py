"""One row a module: what it does to the main metric, what can be said of that in a word, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag_lab._kit.wording import number, p_text, plain, short_verdict
from rag_lab.comparison.advice.blind import unmoved
from rag_lab.comparison.advice.not_worse import NotWorse
from rag_lab.comparison.advice.price import Price, average, surplus
from rag_lab.comparison.advice.statements import is_lesser, removed, removed_level, statement
from rag_lab.comparison.comparison import Comparison
from rag_lab.statistics.effects.factors import factor_values
from rag_lab.statistics.verdict import NO_DIFFERENCE

Word = Literal[
    "better",
    "worse",
    "not worse",
    "not better",
    "cannot tell",
    "no difference",
    "not measured",
    "failed",
    "stopped",
    "not run",
]
_ORDER: tuple[Word, ...] = ("better", "not worse", "not better", "cannot tell", "no difference", "worse")  # then others


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """What one change does to the main metric.

    name: the level of a factor, or the label of a variant.
    variant_id: of the variant; empty for a main effect, which is that of several.
    factor, level: of a main effect; empty for a variant.
    against: the level that it is compared with, or the variant where that is not the baseline; else empty.
    n: questions that it stands on.
    effect, low, high: difference of the main metric and its 95% interval; None where that cannot be told.
    word: what the statistics say of it.
    why: what qualifies the word, or the reason why there is no effect; else empty.
    is_lesser: whether it is shown to be smaller than the margin.
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
    against: str = ""
    factor: str = ""
    level: str = ""
    is_lesser: bool = False


def module_rows(comparison: Comparison) -> list[ModuleRow]:
    """Return the main effects of a grid, or else the pairs that the run is about: the best first, those unscored last.

    They are empty without a quality metric.
    """
    metric = comparison.main_metric
    if metric is None:
        return []
    if comparison.effects.is_grid:
        rows = _main_effects(comparison, metric)
    else:
        rows = [_pair(comparison, *pair, metric) for pair in comparison.run.pairs]
    sign = _sign(comparison, metric)
    return sorted(rows, key=lambda row: (_place(row.word), -sign * (row.effect or 0.0)))


def _place(word: Word) -> int:
    return _ORDER.index(word) if word in _ORDER else len(_ORDER)


def _pair(comparison: Comparison, variant: str, against: str, metric: str) -> ModuleRow:
    row = comparison.pair(variant, against, metric)
    price = surplus(comparison.prices, variant, against)
    label = comparison.label(variant)
    other = "" if against == comparison.run.baseline else comparison.name(against)
    if row is None:
        said = _without(comparison, variant, against)
        return ModuleRow(label, variant, 0, None, None, None, *said, price, other)
    found = comparison.not_worse.get((metric, variant, against))
    said = _word(row, row["difference"], _sign(comparison, metric), found, removed(comparison, variant, against))
    if said[0] == "no difference" and (fields := unmoved(comparison, variant, against, metric)):
        said = "no difference", f"the metric is blind to it: it reads the {fields}"
    ends = (number(row["difference"]), number(row["low"]), number(row["high"]))
    lesser = is_lesser(str(row["verdict"]), found)
    return ModuleRow(label, variant, int(row["n"]), *ends, *said, price, other, is_lesser=lesser)


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
        found = comparison.not_worse.get((metric, factor, level))
        gone = removed_level(factor, level, first)
        said = _word(row, row["effect"], _sign(comparison, metric), found, gone)
        at, lesser = (factor, level), is_lesser(str(row["verdict"]), found)
        rows.append(ModuleRow(f"{factor} = {level}", "", int(row["n"]), *ends, *said, price, first, *at, lesser))
    return rows


def _sign(comparison: Comparison, metric: str) -> int:
    return comparison.scales[metric].sign if metric in comparison.scales else 1


def _word(row: Mapping[Any, Any], effect: Any, sign: int, found: NotWorse | None, gone: str) -> tuple[Word, str]:
    """Return what is said in a word, and what qualifies it; more is better where `sign` is 1."""
    verdict = str(row["verdict"])
    if not int(row["n"]):
        return "not measured", verdict
    word, why = statement(verdict, found, gone)
    if word != "cannot tell":
        return word, why
    if verdict.startswith(NO_DIFFERENCE):
        return "no difference", verdict.removeprefix(NO_DIFFERENCE).strip()
    doubt = str(row["doubt"] or "")
    if doubt.startswith("among "):
        side = "better" if sign * effect > 0 else "worse"
        return word, f"alone it would count as {side}; corrected p {p_text(row['p_corrected'])}"
    smallest = number(row["smallest_difference"])
    if not doubt and smallest is not None:
        return word, f"could have shown {plain(smallest)}"
    return word, short_verdict(verdict)


def _without(comparison: Comparison, variant: str, against: str) -> tuple[Word, str]:
    """Return why a variant has no difference from another."""
    state = comparison.state(variant)
    if state == "failed" or state == "stopped":
        return ("failed" if state == "failed" else "stopped"), comparison.failed[variant]
    if variant not in set(comparison.summary["variant_id"]):
        return ("not measured" if state == "ok" else "not run"), "it has no scores"
    what = "the baseline" if against == comparison.run.baseline else comparison.name(against)
    return "not measured", f"{what} has no scores to compare with"
