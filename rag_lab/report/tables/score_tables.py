"""The tables of scores, differences and effects, what a sweep cost, and the names that `--table` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isclose
from typing import TYPE_CHECKING, Any

from rag_lab._kit.wording import DASH, interval, number, p_value, plain, short_verdict, signed, signed_interval
from rag_lab.comparison.across import AcrossRuns
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.statements import difference_text
from rag_lab.comparison.tables.effects import EffectsFound
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.comparison.tables.stage_tables import commonest
from rag_lab.report.tables.table import Table
from rag_lab.runs.run_manifest import minutes_text, of_calls, with_total
from rag_lab.statistics.noise_components import noise_floor

if TYPE_CHECKING:
    import pandas as pd


_COVERAGE_HEADER = ("metric", "variants", "asked", "scored", "failed", "not applicable", "reasons")
_OPEN_HEADER = (*_COVERAGE_HEADER[:-1], "mean", "worst to best mean", "reasons")
_ORDER_HEADER = ("rank", "variant", "failures counted", "mean", "scored", "failed")


def order_table(comparison: Comparison) -> Table:
    """Return the ranking as a table."""
    rows = [
        (
            str(row["rank"]),
            comparison.name(row["variant_id"]),
            plain(row["ranked_by"]),
            plain(row["mean"]),
            f"{row['scored']}/{row['asked']}",
            str(row["failed"]),
        )
        for row in comparison.ranking.to_dict("records")
    ]
    metric = comparison.directed(comparison.main_metric or "")
    return Table(f"Order in {metric}, failures counted as its worst value", _ORDER_HEADER, tuple(rows), 2)


def coverage_table(comparison: Comparison) -> Table:
    """Return a row a metric and group of variants that have the same counts and reasons.

    Where something failed, each variant has a row of its own, with the means that its failures leave open.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    gaps = dict(iter(comparison.gaps.groupby(["variant_id", "metric"], sort=False)))
    for metric in (*comparison.quality_metrics, *comparison.cost_metrics):
        for plan in comparison.variants:
            cell = comparison.cell(plan.variant_id, metric)
            if cell is not None:
                groups.setdefault(_counts(cell, gaps.get((plan.variant_id, metric), comparison.gaps[:0])), []).append(
                    comparison.codes[plan.variant_id]
                )
    n_scored = comparison.summary["variant_id"].nunique()
    who = ("all variants" if len(codes) == n_scored > 1 else " ".join(codes) for codes in groups.values())
    rows: list[tuple[str, ...]] = [(key[0], named, *key[1:]) for key, named in zip(groups, who, strict=True)]
    header: tuple[str, ...] = _OPEN_HEADER
    if not any(row[header.index("mean")] for row in rows):
        rows, header = [(*row[: len(_COVERAGE_HEADER) - 1], row[-1]) for row in rows], _COVERAGE_HEADER
    return Table("Questions asked, scored and missing", header, tuple(rows), names=2, words=1)


def is_open(cell: dict[str, Any]) -> bool:
    """Tell whether failures leave open what the mean is."""
    mean, ends = number(cell["mean"]), (number(cell["worst"]), number(cell["best"]))
    known = [end for end in ends if end is not None]
    return bool(cell["failed"]) or any(
        mean is None or not isclose(mean, end, rel_tol=1e-9, abs_tol=1e-12) for end in known
    )


def _counts(cell: dict[str, Any], gaps: pd.DataFrame) -> tuple[str, ...]:
    counts = tuple(str(cell[name]) for name in ("asked", "scored", "failed", "not_applicable"))
    worst, best = plain(cell["worst"]), plain(cell["best"])
    ends = DASH if worst == best == DASH else f"{worst} to {best}"  # a dash where the metric has no bound
    means = (plain(cell["mean"]), ends) if is_open(cell) else ("", "")
    reasons_by_status = []
    for status, rows in gaps.groupby("status", sort=True):
        found = commonest(rows)
        reasons = [f"{reason} ({count}×)" for reason, count in found.shown]
        reasons += [f"{found.more} for other reasons"] if found.more else []
        reasons_by_status.append(f"{str(status).replace('_', ' ')}: {'; '.join(reasons)}")
    return (cell["metric"], *counts, *means, ". ".join(reasons_by_status))


_NOISE_HEADER = ("metric", "questions", "generation", "judge", "repeats", "noise floor of a difference")

EFFECT_HEADER = ("effect", "n", "difference", "95% interval", "p", "corrected p", "family", "effect size", "verdict")
_KINDS = {"main": "main effects", "interaction": "interactions", "conditional": "each effect at each level beside it"}

_DECIMALS = {"calls": 0, "tokens": 0, "cost_usd": 4}
_UNITS = {"calls": "calls", "tokens": "tokens", "cost_usd": "USD"}

SUMMARY_HEADER = ("variant", "metric", "mean", "95% interval", "scored", "failed", "not applicable")
DIFFERENCE_HEADER = (
    *("variant", "metric", "n", "difference", "95% interval", "p", "corrected p", "family", "effect size"),
    *("won/tied/lost", "verdict"),
)
CORRECTIONS = {"max_t": "max-T", "bh": "Benjamini-Hochberg", "none": "none"}


def scores_tables(comparison: Comparison) -> dict[str, list[Table]]:
    """Return scores, differences, the order of the variants, and those without scores."""
    run = comparison.run
    metrics = (*comparison.quality_metrics, *comparison.cost_metrics)
    scores = scores_table(f"{run.name}: scores", comparison.summary, metrics, comparison.name, comparison.measured)
    rows = tuple((comparison.name(variant), reason) for variant, reason in comparison.failed.items())
    return {
        "scores": [scores],
        "differences": [differences_of(comparison)],
        "order": [order_table(comparison)] if comparison.main_metric is not None else [],
        "failed": [Table(f"{run.name}: without scores", ("variant", "reason"), rows, names=2)],
    }


def tables_across(found: AcrossRuns) -> dict[str, list[Table]]:
    """Return of two runs: scores, differences, the variants that both have, and what changed."""
    metrics = list(dict.fromkeys(found.summary["metric"]))
    first, second = found.names
    baseline = found.label(f"{first}/{found.first.run.baseline}")
    changes = tuple((change.what, change.first, change.second) for change in found.changes)
    return {
        "scores": [scores_table("Scores on the shared questions", found.summary, metrics, found.label)],
        "differences": [differences_table(f"Against {baseline}", found.differences, found.label)],
        "same": [differences_table(f"The same variant, {second} minus {first}", found.same, found.label)],
        "changes": [Table("What changed", ("what", first, second), changes, names=3)],
    }


def verdicts_table(comparison: Comparison) -> Table:
    """Return of each difference what fits beside its verdict in full into the lines of a terminal."""
    return differences_of(comparison).only("variant", "metric", "difference", "95% interval", "verdict")


def differences_title(comparison: Comparison) -> str:
    """Return what is compared with what, and the correction."""
    run = comparison.run
    others = [against for _, against in run.pairs if against != run.baseline]
    against = f"against {comparison.label(run.baseline)}"
    if comparison.pairs == "all":
        against = "every pair"
    elif others:
        against = f"the pairs of the experiment, and {against}"
    strict = ", strict" if run.strict else ""
    return f"{run.name}: {against} (correction: {CORRECTIONS[comparison.correction]}, in each family{strict})"


def scores_table(
    title: str,
    summary: pd.DataFrame,
    metrics: Sequence[str],
    name: Callable[[str], str],
    measured: Callable[[str, str], str] = lambda _, metric: metric,
) -> Table:
    """Return a row a (metric, variant): mean, interval, and how many of those asked were scored.

    `name` says what a variant is called, `measured` what was measured of it.
    """
    rows = [row for metric in metrics for row in _records(summary) if row["metric"] == metric]
    return Table(title, SUMMARY_HEADER, tuple(_scores(row, name, measured) for row in rows), names=2)


def differences_of(comparison: Comparison, differences: pd.DataFrame | None = None) -> Table:
    """Return the differences of a run, or some of them, with what test, interval and margin allow one to say."""
    return differences_table(
        differences_title(comparison) if differences is None else "",
        comparison.differences if differences is None else differences,
        comparison.name,
        is_paired=differences is not None,
        said=partial(difference_text, comparison),
    )


def differences_table(
    title: str,
    differences: pd.DataFrame,
    name: Callable[[str], str],
    *,
    is_paired: bool = False,
    said: Callable[[dict[str, Any]], str] = lambda row: short_verdict(str(row["verdict"])),
) -> Table:
    """Return a row a comparison: difference, interval, p, and what can be said; all pairs name both variants."""
    is_paired = is_paired or differences["against"].nunique() > 1
    rows = tuple((*_difference(row, name, is_paired), said(row)) for row in _records(differences))
    return Table(title, DIFFERENCE_HEADER, rows, names=2, words=1)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def _scores(row: dict[str, Any], name: Callable[[str], str], measured: Callable[[str, str], str]) -> tuple[str, ...]:
    return (
        name(row["variant_id"]),
        measured(str(row["variant_id"]), str(row["metric"])),
        plain(row["mean"]),
        interval(row["low"], row["high"]),
        f"{row['scored']}/{row['asked']}",
        str(row["failed"]),
        str(row["not_applicable"]),
    )


def _difference(row: dict[str, Any], name: Callable[[str], str], is_paired: bool) -> tuple[str, ...]:
    return (
        f"{name(row['variant_id'])} against {name(row['against'])}" if is_paired else name(row["variant_id"]),
        str(row["metric"]),
        str(row["n"]),
        signed(row["difference"]),
        signed_interval(row["low"], row["high"]),
        p_value(row["p_value"]),
        p_value(row["p_corrected"]),
        str(row["family"]),
        signed(row["effect_size"]),
        f"{row['wins']}/{row['ties']}/{row['losses']}",
    )


def bill_table(tables: RunTables) -> Table:
    """Return a row a stage or metric and one of all, minutes in the title; no rows where the run is not finished."""
    columns = [(measure, when) for measure in _UNITS for when in ("estimated", "spent")]
    header = ("stage or metric", *(f"{_UNITS[measure]} {when}" for measure, when in columns))
    title = "What the sweep was estimated to take, and took"
    spent = of_calls(tables.manifest.get("spent", []))
    if "spent" in tables.manifest:
        title += f"; {minutes_text(spent)}"
    rows = tuple(
        (str(row["purpose"]), *(_text(row.get(f"{measure}_{when}"), _DECIMALS[measure]) for measure, when in columns))
        for row in with_total(spent)
    )
    return Table(title, header, rows)


def _text(value: Any, decimals: int) -> str:
    return DASH if (known := number(value)) is None else f"{known:,.{decimals}f}"


def effect_tables(found: EffectsFound, metric: str) -> list[Table]:
    """Return the effects on `metric` by kind. Toggles are not there: they are the differences from the baseline."""
    ours = found.table[found.table["metric"] == metric]
    return [
        Table(f"{metric}: {title}", EFFECT_HEADER, rows, words=1)
        for kind, title in _KINDS.items()
        if (rows := tuple(_effect(row) for row in ours[ours["kind"] == kind].to_dict("records")))
    ]


def _effect(row: dict[Any, Any]) -> tuple[str, ...]:
    name = f"{row['factor']}={row['level']}"
    if row["kind"] == "interaction":
        name += f" × {row['other']}={row['other_level']}"
    elif row["kind"] == "conditional":
        name += f" while {row['other']}={row['other_level']}"
    return (
        f"{name}, against {row['first']}",
        str(row["n"]),
        signed(row["effect"]),
        signed_interval(row["low"], row["high"]),
        p_value(row["p_value"]),
        p_value(row["p_corrected"]),
        str(row["family"]),
        signed(row["effect_size"]),
        short_verdict(str(row["verdict"])),
    )


def noise_table(tables: RunTables) -> Table:
    """Return the variance of a single score by its source, in percent, and the floor below which nothing is told."""
    rows = []
    for metric, found in tables.noise.items():
        parts = (found.question, found.generation, found.judge)
        total = sum(value or 0.0 for value in parts)
        shares = [DASH if value is None or not total else f"{100 * value / total:.0f}%" for value in parts]
        rows.append((metric, *shares, f"{found.repeats:.3g}", plain(number(noise_floor(found).value))))
    return Table("Variance of a single score by source, and the noise floor", _NOISE_HEADER, tuple(rows))
