"""What can be said of a comparison where a margin was given: one of five statements, in a word and in a sentence.

*better*; *worse*; *worse, but by less than the margin*; *not worse by more than the margin*, with which something may
be left out where that saves something; *cannot tell*. Of an addition, which costs more and saves nothing, the last but
one is turned round: it is *not better* by more than the margin, and may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag_lab._kit.wording import counted, listing, number, p_text, plain, short_verdict
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.tables.comparable import unchanged_fields
from rag_lab.comparison.tables.not_worse import NotWorse
from rag_lab.comparison.tables.prices import Price, average, surplus
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.effects.factors import factor_values, level_text
from rag_lab.statistics.verdict import NO_DIFFERENCE

Finding = Literal["better", "worse", "not worse", "not better", "cannot tell"]
_OFF = ("none", None, False, 0, "")
_OFF_LEVELS = frozenset(map(level_text, _OFF))


def statement(verdict: str, found: NotWorse | None, removed: str = "") -> tuple[Finding, str]:
    """Return what is said of a comparison in a word, and how that reads on; "" where nothing is to be added.

    Args:
        verdict: of the two-sided test, `better`, `worse` or anything else.
        found: by the margin; None where there is none.
        removed: what the variant does without; see `removed`.
    """
    if verdict == "better" or verdict == "worse":
        by = ""
        if found is not None and is_lesser(verdict, found):
            may_go = f": {_may_go(found, removed)}" if found.is_addition else ""
            by = f"but by less than {found.margin:g}{may_go}"
        return ("better" if verdict == "better" else "worse"), by
    if found is None or not found.is_found:
        return "cannot tell", ""
    told = f"by more than {found.margin:g}"
    if found.is_addition or found.price.is_saving:
        told += f": {_may_go(found, removed)}"
    return ("not better" if found.is_addition else "not worse"), told


def difference_text(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """Return what is said of a row of `differences`, by test, interval and margin, as for the first table."""
    metric, pair = str(row["metric"]), (str(row["variant_id"]), str(row["against"]))
    word, why = statement(str(row["verdict"]), comparison.not_worse.get((metric, *pair)), removed(comparison, *pair))
    return short_verdict(str(row["verdict"])) if word == "cannot tell" else f"{word} {why}".rstrip()


def is_lesser(verdict: str, found: NotWorse | None) -> bool:
    """Tell whether a finding, `better` or `worse`, is shown to be smaller than the margin."""
    return found is not None and found.is_found and verdict == ("better" if found.is_addition else "worse")


def _may_go(found: NotWorse, removed: str) -> str:
    return "it may be left out" if found.is_addition else instead(removed)


def instead(removed: str) -> str:
    """Say what follows from a variant that is not worse and saves something: `removed` is what it does without."""
    return f"{removed} may be left out" if removed else "it may be used instead"


def removed(tables: RunTables, variant: str, against: str) -> str:
    """Name what a variant does without, as `rerank.name=query_likelihood`; "" where it changes anything else."""
    changes = {plan.variant_id: plan.changes for plan in tables.variants}
    ours, theirs = changes.get(variant, {}), changes.get(against, {})
    base = tables.baseline_values
    pairs = {key: (theirs.get(key, base.get(key)), ours.get(key, base.get(key))) for key in {**theirs, **ours}}
    gone = {key: was for key, (was, now) in pairs.items() if was != now}
    if not gone or any(pairs[key][1] not in _OFF for key in gone):
        return ""
    return listing([f"{key}={was}" for key, was in gone.items()])


def removed_level(factor: str, level: str, first: str) -> str:
    """Name what a level of a factor does without, as `removed` does of a variant; "" where it changes anything else."""
    return f"{factor}={first}" if level in _OFF_LEVELS else ""


def margin_sentence(name: str, against: str, metric: str, found: NotWorse, removed: str) -> str:
    """Say in full that what is called `name` is not worse, or adds less, by the margin; only where that was found."""
    p = f"one-sided corrected p {p_text(found.p_corrected)}, {counted(found.n, 'question')}{_failures(found)}"
    if found.is_addition:
        return (
            f"{name} is not better than {against} by more than {found.margin:g} in {metric} ({p}): it may be left "
            f"out, which saves {found.price.text} a question."
        )
    start = f"{name} is not worse than {against} by more than {found.margin:g} in {metric} ({p})"
    if found.price.is_saving:
        return f"{start}: {instead(removed)}, which saves {found.price.text} a question."
    return f"{start}; it {found.price.sentence}."


def _failures(found: NotWorse) -> str:
    return f", of which {found.n_failed} failed and count against it" if found.n_failed else ""


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
    return sorted(
        rows,
        key=lambda row: ((_ORDER.index(row.word) if row.word in _ORDER else len(_ORDER)), -sign * (row.effect or 0.0)),
    )


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
    if said[0] == "no difference" and (fields := unchanged_fields(comparison, variant, against, metric)):
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
