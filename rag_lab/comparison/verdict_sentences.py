"""What the data say, in plain words: the first thing a reviewer reads."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from rag_lab._kit.numbers import number, p_text, plain, seconds, signed, signed_interval, with_interval
from rag_lab._kit.wording import counted, listing
from rag_lab.comparison.comparison import Comparison

FULLY_TOLD = 3  # reliable variants with a sentence of their own
FEW = 20  # questions: fewer show only very large differences
_ENDED = {"failed": "failed", "stopped": "was stopped by a limit"}


def verdict(comparison: Comparison) -> list[str]:
    """Return the sentences of the verdict on the main metric, the most important first."""
    metric = comparison.main_metric
    if metric is None:
        return ["No quality metric was asked for, so nothing can be said about quality."]
    if comparison.scores.empty:
        return ["No variant has scores: the reasons stand beside the variants."]
    compared = [plan.variant_id for plan in comparison.variants if comparison.difference(plan.variant_id, metric)]
    reliable = [variant for variant in compared if comparison.reliable(variant, metric)]
    equal = [variant for variant in compared if _all_ties(comparison.difference(variant, metric) or {})]
    unsettled = [variant for variant in compared if variant not in reliable and variant not in equal]
    in_order = [variant for variant in comparison.ranking["variant_id"] if variant in reliable]
    sentences = [_reliable(comparison, variant, metric) for variant in in_order[:FULLY_TOLD]]
    if len(reliable) > FULLY_TOLD:
        sentences.append(_also_reliable(comparison, in_order[FULLY_TOLD:], metric))
    doubted = [variant for variant in unsettled if (comparison.difference(variant, metric) or {})["doubt"]]
    if doubted:
        sentences.append(_no_finding(comparison, doubted, metric))
    if len(unsettled) > len(doubted):
        open_ones = [variant for variant in unsettled if variant not in doubted]
        sentences.append(_cannot_tell(comparison, open_ones, metric))
    if equal:
        sentences.append(_equal(comparison, equal, metric))
    return sentences + _elsewhere(comparison) + _caveats(comparison, metric, compared)


def named(comparison: Comparison, variant_id: str) -> str:
    """Return letter and label of a variant: `B (rerank.name=none)`."""
    return f"{comparison.codes[variant_id]} ({comparison.label(variant_id)})"


def _reliable(comparison: Comparison, variant: str, metric: str) -> str:
    row = comparison.difference(variant, metric) or {}
    more, is_better = float(row["difference"]) > 0, comparison.reliable(variant, metric) > 0
    verb, size = "raises" if more else "lowers", plain(abs(float(row["difference"])))
    judged = "" if more == is_better else f", which is {row['verdict']},"
    between, n, p = signed_interval(row["low"], row["high"]), int(row["n"]), p_text(row["p_corrected"])
    wins, ties, losses = int(row["wins"]), int(row["ties"]), int(row["losses"])
    return (
        f"{named(comparison, variant)} {verb} {metric} by {size}{judged} against the baseline (95% interval of the "
        f"difference {between}; {n} questions; corrected p {p}): {wins} questions better, {ties} equal, "
        f"{losses} worse.{_price(comparison, variant)}"
    )


def _also_reliable(comparison: Comparison, variants: Sequence[str], metric: str) -> str:
    told = [f"{named(comparison, one)} {_seen(comparison.difference(one, metric) or {})}" for one in variants]
    return f"Reliably different from the baseline in {comparison.directed(metric)} as well: {'; '.join(told)}."


def _equal(comparison: Comparison, variants: Sequence[str], metric: str) -> str:
    asked = len(comparison.questions)
    counts = [int((comparison.difference(variant, metric) or {})["n"]) for variant in variants]
    names = [
        f"{named(comparison, one)} ({n} of {counted(asked, 'question')})"
        for one, n in zip(variants, counts, strict=True)
    ]
    return f"Every question compared scores the same with {listing(names)} as with the baseline in {metric}."


def _all_ties(row: dict[str, Any]) -> bool:
    return 0 < int(row["n"]) == int(row["ties"])


def _price(comparison: Comparison, variant: str) -> str:
    table = comparison.latency.set_index("variant_id")["median_s"]
    if variant not in table.index or comparison.run.baseline not in table.index:
        return ""
    mine, base = seconds(table[variant]), seconds(table[comparison.run.baseline])
    return f" A question takes {mine} s, with the baseline {base} s (medians)." if mine != base else ""


def _cannot_tell(comparison: Comparison, variants: Sequence[str], metric: str) -> str:
    rows = {variant: comparison.difference(variant, metric) or {} for variant in variants}
    names = [f"{named(comparison, variant)} {_seen(row)}" for variant, row in rows.items()]
    halves = [(float(row["high"]) - float(row["low"])) / 2 for row in rows.values() if number(row["low"]) is not None]
    n = max(int(row["n"]) for row in rows.values())
    width = f" With {n} questions an interval reaches about {plain(median(halves))} to each side." if halves else ""
    return f"The data cannot tell from chance, in {metric}: {'; '.join(names)}.{width}"


def _no_finding(comparison: Comparison, variants: Sequence[str], metric: str) -> str:
    """Name the differences that are not called one although their interval or their test alone looks so, and why."""
    rows = {variant: comparison.difference(variant, metric) or {} for variant in variants}
    names = [f"{named(comparison, variant)} {_seen(row)} ({row['doubt']})" for variant, row in rows.items()]
    return f"Looks like a difference in {metric}, but is no finding: {'; '.join(names)}."


def _seen(row: dict[str, Any]) -> str:
    if number(row["low"]) is None or number(row["high"]) is None:
        return f"({row['verdict']})"
    return with_interval(row["difference"], row["low"], row["high"])


def _elsewhere(comparison: Comparison) -> list[str]:
    """Name the reliable differences in the other quality metrics."""
    found = []
    for metric in comparison.quality_metrics[1:]:
        rows = {
            comparison.codes[plan.variant_id]: comparison.difference(plan.variant_id, metric) or {}
            for plan in comparison.variants
            if comparison.reliable(plan.variant_id, metric)
        }
        if rows:
            seen = ", ".join(f"{code} {signed(row['difference'])}" for code, row in rows.items())
            found.append(f"{seen} in {comparison.directed(metric)}")
    return [f"Reliable differences in other metrics: {'; '.join(found)}."] if found else []


def _caveats(comparison: Comparison, metric: str, compared: Sequence[str]) -> list[str]:
    caveats = [
        f"{named(comparison, variant)} {_ENDED[comparison.state(variant)]} and is not compared."
        for variant in comparison.failed
    ]
    baseline = comparison.run.baseline
    if baseline not in comparison.failed and not compared:
        caveats.append("No other variant has scores, so there is nothing to compare the baseline with.")
    if baseline in comparison.failed:
        caveats.append("Without scores of the baseline no variant can be compared.")
    missing = [_coverage(comparison, variant, metric) for variant in [baseline, *compared]]
    missing = [text for text in missing if text]
    if missing:
        caveats.append(f"Some questions could not be scored in {metric}: {listing(missing)}.")
    return caveats + _thin(comparison)


def _thin(comparison: Comparison) -> list[str]:
    """Name the metrics that stand on so few questions that hardly a difference could be told."""
    scored = {metric: comparison.cell(comparison.run.baseline, metric) for metric in comparison.quality_metrics}
    few = [f"{metric} ({cell['scored']})" for metric, cell in scored.items() if cell and cell["scored"] < FEW]
    return (
        [f"Metrics with fewer than {FEW} questions, in which hardly anything can be told: {listing(few)}."]
        if few
        else []
    )


def _coverage(comparison: Comparison, variant: str, metric: str) -> str:
    row = comparison.cell(variant, metric)
    if row is None or not int(row["failed"]):
        return ""
    return f"{comparison.codes[variant]} {int(row['scored'])} of {int(row['scored']) + int(row['failed'])}"
