"""The tables of scores, differences and effects, and what a sweep cost."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import isclose
from typing import Any

import pandas as pd

from rag_lab._kit.wording import DASH, interval, number, p_value, plain, seconds, short_verdict, signed, signed_interval
from rag_lab.comparison.across import AcrossRuns
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.verdict_sentences import difference_text
from rag_lab.comparison.tables.costs import commonest, index_cells
from rag_lab.comparison.tables.effects import EffectsFound
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.report.table import Table
from rag_lab.runs.run_manifest import minutes_text, of_calls, total
from rag_lab.statistics.noise_components import noise_floor
from rag_lab.statistics.verdict import resolution

CORRECTIONS = {"max_t": "max-T", "bh": "Benjamini-Hochberg", "none": "none"}
_COVERAGE_HEADER = ("metric", "variants", "asked", "scored", "failed", "not applicable", "reasons")
_OPEN_HEADER = (*_COVERAGE_HEADER[:-1], "mean", "worst to best mean", "reasons")
_EFFECT_HEADER = ("difference", "95% interval", "p", "corrected p", "family", "effect size", "resolved")


def scores_tables(comparison: Comparison) -> dict[str, list[Table]]:
    """Return scores, differences, the order of the variants, and those without scores."""
    run, name = comparison.run, comparison.name
    metrics = (*comparison.quality_metrics, *comparison.cost_metrics)
    scores = scores_table(f"{run.name}: scores", comparison.summary, metrics, name, comparison.measured)
    failed = tuple((name(variant), reason) for variant, reason in comparison.failed.items())
    order = tuple(
        (
            str(row["rank"]),
            name(row["variant_id"]),
            plain(row["ranked_by"]),
            plain(row["mean"]),
            f"{row['scored']}/{row['asked']}",
            str(row["failed"]),
        )
        for row in comparison.ranking.to_dict("records")
    )
    header = ("rank", "variant", "failures counted", "mean", "scored", "failed")
    main = comparison.main_metric
    title = f"Order in {comparison.directed(main or '')}, failures counted as its worst value"
    return {
        "scores": [scores],
        "differences": [differences_of(comparison)],
        "order": [Table(title, header, order, names=2)] if main is not None else [],
        "failed": [Table(f"{run.name}: without scores", ("variant", "reason"), failed, names=2)],
    }


def coverage_table(comparison: Comparison) -> Table:
    """Return a row a metric and group of variants that have the same counts and reasons.

    Where something failed, each variant has a row of its own, with the means that its failures leave open.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    gaps = dict(iter(comparison.gaps.groupby(["variant_id", "metric"], sort=False)))
    for metric in (*comparison.quality_metrics, *comparison.cost_metrics):
        for plan in comparison.variants:
            cell = comparison.cell(plan.variant_id, metric)
            if cell is None:
                continue
            counts = tuple(str(cell[name]) for name in ("asked", "scored", "failed", "not_applicable"))
            worst, best = plain(cell["worst"]), plain(cell["best"])
            ends = DASH if worst == best == DASH else f"{worst} to {best}"  # a dash where the metric has no bound
            means = (plain(cell["mean"]), ends) if is_open(cell) else ("", "")
            statuses = []
            missing = gaps.get((plan.variant_id, metric), comparison.gaps[:0])
            for status, of_status in missing.groupby("status", sort=True):
                statuses.append(f"{str(status).replace('_', ' ')}: {commonest(of_status)}")
            key = (cell["metric"], *counts, *means, ". ".join(statuses))
            groups.setdefault(key, []).append(comparison.codes[plan.variant_id])
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


def answers_table(rows: Iterable[tuple[str, ...]]) -> Table:
    """Return the answers that a later run, or a later state of the documents, changed."""
    header = ("variant", "question", "before", "after", "out of date by")
    return Table("Answers that changed", header, tuple(rows), names=5)


def tables_across(found: AcrossRuns) -> dict[str, list[Table]]:
    """Return of two runs: scores, differences, the variants that both have, what changed, and which answers."""
    metrics = list(dict.fromkeys(found.summary["metric"]))
    first, second = found.names
    baseline = found.label(f"{first}/{found.first.run.baseline}")
    changes = tuple((change.what, change.first, change.second) for change in found.changes)
    return {
        "scores": [scores_table("Scores on the shared questions", found.summary, metrics, found.label)],
        "differences": [differences_table(f"Against {baseline}", found.differences, found.label)],
        "same": [differences_table(f"The same variant, {second} minus {first}", found.same, found.label)],
        "changes": [Table("What changed", ("what", first, second), changes, names=3)],
        "answers": [answers_table(found.changed_answers)],
    }


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
    rows = tuple(
        (
            name(row["variant_id"]),
            measured(str(row["variant_id"]), str(row["metric"])),
            plain(row["mean"]),
            interval(row["low"], row["high"]),
            f"{row['scored']}/{row['asked']}",
            str(row["failed"]),
            str(row["not_applicable"]),
        )
        for metric in metrics
        for row in summary[summary["metric"] == metric].to_dict("records")
    )
    header = ("variant", "metric", "mean", "95% interval", "scored", "failed", "not applicable")
    return Table(title, header, rows, names=2)


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


def differences_of(comparison: Comparison, differences: pd.DataFrame | None = None) -> Table:
    """Return the differences of a run, or some of them, with what test, interval and margin allow one to say."""
    return differences_table(
        differences_title(comparison) if differences is None else "",
        comparison.differences if differences is None else differences,
        comparison.name,
        is_paired=differences is not None,
        verdict=partial(difference_text, comparison),
    )


def differences_table(
    title: str,
    differences: pd.DataFrame,
    name: Callable[[str], str],
    *,
    is_paired: bool = False,
    verdict: Callable[[dict[str, Any]], str] = lambda row: short_verdict(str(row["verdict"])),
) -> Table:
    """Return a row a comparison: difference, interval, p, and what can be said; all pairs name both variants."""
    is_paired = is_paired or differences["against"].nunique() > 1
    rows = tuple(
        (
            f"{name(row['variant_id'])} against {name(row['against'])}" if is_paired else name(row["variant_id"]),
            str(row["metric"]),
            str(row["n"]),
            *_effect_cells(row, row["difference"]),
            f"{row['wins']}/{row['ties']}/{row['losses']}",
            verdict({str(key): value for key, value in row.items()}),
        )
        for row in differences.to_dict("records")
    )
    header = ("variant", "metric", "n", *_EFFECT_HEADER, "won/tied/lost", "verdict")
    return Table(title, header, rows, names=2, words=1)


def _effect_cells(row: dict[Any, Any], effect: float) -> tuple[str, ...]:
    ends, raw, corrected = signed_interval(row["low"], row["high"]), row["p_value"], row["p_corrected"]
    resolved = resolution(number(effect), number(row["smallest_difference"]))
    size = signed(row["effect_size"]), DASH if resolved is None else f"{resolved:.2f}"
    return signed(effect), ends, p_value(raw), p_value(corrected), str(row["family"]), *size


def effect_tables(found: EffectsFound, metric: str) -> list[Table]:
    """Return the effects on `metric` by kind. Toggles are not there: they are the differences from the baseline."""
    kinds = {  # how a kind is called, and how it names the level of its other factor
        "main": ("main effects", ""),
        "interaction": ("interactions", " × "),
        "conditional": ("each effect at each level beside it", " while "),
    }
    ours = found.table[found.table["metric"] == metric]
    tables = []
    for kind, (title, joined) in kinds.items():
        rows = []
        for row in ours[ours["kind"] == kind].to_dict("records"):
            other = f"{joined}{row['other']}={row['other_level']}" if joined else ""
            name = f"{row['factor']}={row['level']}{other}, against {row['first']}"
            verdict = short_verdict(str(row["verdict"]))
            rows.append((name, str(row["n"]), *_effect_cells(row, row["effect"]), verdict))
        if rows:
            header = ("effect", "n", *_EFFECT_HEADER, "verdict")
            tables.append(Table(f"{metric}: {title}", header, tuple(rows), words=1))
    return tables


def bill_table(tables: RunTables) -> Table:
    """Return a row a stage or metric and one of all, minutes in the title; no rows where the run is not finished."""
    units = {"calls": ("calls", 0), "tokens": ("tokens", 0), "cost_usd": ("USD", 4)}  # with their decimals
    columns = [(measure, when) for measure in units for when in ("estimated", "spent")]
    header = ("stage or metric", *(f"{units[measure][0]} {when}" for measure, when in columns))
    title = "What the sweep was estimated to take, and took"
    spent = of_calls(tables.manifest.get("spent", []))
    if "spent" in tables.manifest:
        title += f"; {minutes_text(spent)}"
    rows = []
    for row in [*spent, total(spent)] if spent else []:
        values = [(number(row.get(f"{measure}_{when}")), units[measure][1]) for measure, when in columns]
        texts = (DASH if value is None else f"{value:,.{decimals}f}" for value, decimals in values)
        rows.append((str(row["purpose"]), *texts))
    return Table(title, header, tuple(rows))


def noise_table(tables: RunTables) -> Table:
    """Return the variance of a single score by its source, in percent, and the floor below which nothing is told."""
    rows = []
    for metric, found in tables.noise.items():
        parts = (found.question, found.generation, found.judge)
        total = sum(value or 0.0 for value in parts)
        shares = [DASH if value is None or not total else f"{100 * value / total:.0f}%" for value in parts]
        rows.append((metric, *shares, f"{found.repeats:.3g}", plain(number(noise_floor(found).value))))
    header = ("metric", "questions", "generation", "judge", "repeats", "noise floor of a difference")
    return Table("Variance of a single score by source, and the noise floor", header, tuple(rows))


def growth_table(comparison: Comparison) -> Table:
    """Return a row a pipeline and number of distractors: the main metric, and what index and search take."""
    found, took, rows = comparison.growth, comparison.latency.set_index("variant_id")["search_s"].to_dict(), []
    for name, variants in found.curves.items() if found else ():
        for size, variant in variants.items():
            cell = comparison.cell(variant, found.metric if found else "") or {}
            scores = plain(cell["mean"]), interval(cell["low"], cell["high"]), seconds(took.get(variant))
            rows.append((name, f"{size:,}", *scores, *index_cells(comparison)[variant]))
    header = ("distractors", "mean", "95% interval", "search, seconds", "chunks embedded", "minutes", "MB")
    metric = comparison.directed(found.metric) if found else ""
    return Table(f"{metric} as documents that answer nothing join the corpus", ("pipeline", *header), tuple(rows))
