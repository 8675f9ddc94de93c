"""What the questions of a plan can show, by the spread that an earlier run or a pilot saw."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from rag_lab._kit.wording import counted, listing, plain
from rag_lab.data.sampling import clusters_of
from rag_lab.errors import RagLabError
from rag_lab.evaluation.cutoff_caveats import not_compared
from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.config import SAYS, ExperimentConfig
from rag_lab.experiment.forecast.caveats import measured
from rag_lab.experiment.plan import Plan
from rag_lab.report.table import Table
from rag_lab.runs.run_folder import RunFolder
from rag_lab.statistics import families, randomization, verdict
from rag_lab.statistics.effects import GRIDS, PRIMARY_KINDS, contrasts, factor_values, read_factors
from rag_lab.statistics.non_inferiority import LEAST_QUESTIONS, ForMargin, Pilot, for_margin, pilot_of
from rag_lab.statistics.summaries import per_question, scales_of

RESULTS = Path("results")


def earlier_scores(plan: Plan, runs: Sequence[RunFolder], metrics: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Return the scores of the plan's variants under their ids, and where they are from, or why there are none."""
    parts: dict[str, pd.DataFrame] = {}
    used: list[str] = []
    for run in runs:
        scores = run.scores()
        configs = {variant.variant_id: run.config(variant.variant_id) for variant in run.variants}
        by_config = {config.identity: name for name, config in configs.items() if config is not None}
        for variant in plan.variants:
            variant_id = variant.variant_id
            theirs = by_config.get(variant.config.identity, variant_id)
            rows = scores[(scores["variant_id"] == theirs) & scores["metric"].isin(metrics)]
            if variant_id not in parts and (rows["status"] == "scored").any():
                parts[variant_id] = rows.assign(variant_id=variant_id)
                used.append(str(run.path))
    if not parts:
        looked = f"{listing([str(run.path) for run in runs])} holds no scores of these variants" if runs else ""
        return pd.DataFrame(), looked
    found = pd.concat(parts.values(), ignore_index=True)
    asked = counted(found["question_id"].nunique(), "question")
    missing = [variant.variant_id for variant in plan.variants if variant.variant_id not in parts]
    without = f", which has no scores of {listing(missing)}" if missing else ""
    return found, f"{listing(list(dict.fromkeys(used)))} ({asked}){without}"


_pilot_name = "{:.58}-pilot".format  # under which `results/` has the pilot of an experiment


def runs_of(plan: Plan, given: Sequence[Path] = (), out: Path | None = None) -> list[RunFolder]:
    """Return the runs that were given, or else those of the experiment and of its pilot that hold scores.

    `out` is the run folder of the experiment, `results/<name>` where None.
    """
    if given:
        return [RunFolder.open(path) for path in given]
    found = []
    for path in (out or RESULTS / plan.experiment.name, RESULTS / _pilot_name(plan.experiment.name)):
        with suppress(RagLabError):
            run = RunFolder.open(path)
            run.scores()
            found.append(run)
    return found


def pilot_of_experiment(experiment: ExperimentConfig, n_questions: int) -> ExperimentConfig:
    """Return the experiment on so few questions, under a name of its own, and without a margin: it proves nothing."""
    limits = experiment.limits.model_copy(update={"questions": n_questions})
    return experiment.model_copy(update={"name": _pilot_name(experiment.name), "limits": limits, "margin": {}})


@dataclass(frozen=True, slots=True)
class PlannedComparison:
    """What a plan can show of one comparison in one metric.

    n: questions that are planned, on which the metric can be measured.
    smallest: the smallest true difference that they find with a power of 0.8; None where they find none.
    margin, power: of the metric, and the chance of "not worse by more than it" if nothing differs.
    questions, in_half, alone: how many give that a power of 0.8, in the family, in one of half its size, and alone;
        None where there is no margin, or more than 20,000 units.
    reason: why nothing can be planned, else ''.
    """

    metric: str
    comparison: str
    is_primary: bool
    n: int
    smallest: float | None = None
    margin: float | None = None
    power: float | None = None
    questions: int | None = None
    in_half: int | None = None
    alone: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PowerForecast:
    """What a plan can show.

    source: where the spread is from; without rows why there is none, '' where there is no run.
    rows: a comparison and metric each, the primary metric first; none where nothing is known of the spread.
    compares: whether the plan compares anything.
    lacks: what the baseline lacks to the best value of the primary metric, on average; None where unknown.
    fewer_variants, fewer_metrics: by how much the smallest difference shrinks, as a share, with half the comparisons
        and with one; with one secondary metric instead of all.
    """

    source: str
    rows: tuple[PlannedComparison, ...] = ()
    compares: bool = True
    lacks: float | None = None
    fewer_variants: tuple[float, float] | None = None
    fewer_metrics: float | None = None


def power_forecast(plan: Plan, runs: Sequence[RunFolder]) -> PowerForecast:
    """Return what a plan can show, by the scores of earlier runs: of each variant those of the first that has it.

    A variant of a run is the same where its configuration is, or else where it has the same id. Of a race or a
    search nothing is told: which two variants its proof compares is not known before.
    """
    if plan.rounds:
        return PowerForecast("", compares=False)
    metrics = [metric for metric in plan.metrics if not metric.info.is_cost]
    compared = _contrasts(plan)
    found, source = earlier_scores(plan, runs, [metric.name for metric in metrics])
    if not metrics or not compared or found.empty:
        return PowerForecast(source, compares=bool(metrics and compared))
    infos = {metric.name: metric.info.scale for metric in metrics}
    scales = infos | scales_of(found, infos)
    clusters = clusters_of(plan.dataset.questions, plan.experiment.clusters)
    questions = per_question(found)
    pilots = {name: pilot_of(questions, name, compared, scales[name], clusters) for name in infos}
    alpha: Mapping[verdict.FamilyName, float] = (
        families.STRICT if plan.experiment.strict else dict.fromkeys(families.STRICT, randomization.ALPHA)
    )
    primary, *others = (metric.name for metric in metrics)
    rest = [pilots[name] for name in others]
    first = _critical([pilots[primary]], alpha["primary"])
    later = _critical(rest, alpha["secondary"]) if rest else first
    rows = []
    for metric in metrics:
        critical = first if metric.name == primary else later
        rows += _rows(plan, metric, pilots[metric.name], compared, critical, is_primary=metric is metrics[0])
    ours = found[(found["metric"] == primary) & (found["status"] == "scored")]
    values = ours.loc[ours["variant_id"] == plan.expansion.baseline.variant_id, "value"].astype(float)
    best, pilot, fewer = scales[primary].best, pilots[primary], None
    if len(pilot.keys) >= 3:
        half = Pilot(pilot.keys[::2], pilot.sums[:, ::2], pilot.counts[:, ::2], None)
        with_fewer = (_critical([half], alpha["primary"]), verdict.sidak(1, alpha["primary"]))
        fewer = _shrinks(first, with_fewer[0]), _shrinks(first, with_fewer[1])
    return PowerForecast(
        source,
        tuple(rows),
        lacks=None if best is None or values.empty else abs(best - math.fsum(values) / len(values)),
        fewer_variants=fewer,
        fewer_metrics=_shrinks(later, _critical(rest[:1], alpha["secondary"])) if len(rest) > 1 else None,
    )


def _rows(
    plan: Plan,
    metric: ParsedName,
    pilot: Pilot,
    compared: Mapping[str, Mapping[Any, float]],
    critical: float,
    *,
    is_primary: bool,
) -> list[PlannedComparison]:
    n, units = measured(plan, metric)
    margin, unit = plan.margins.get(metric.name), "question" if units == n else "cluster"
    configs = {variant.variant_id: variant.config for variant in plan.variants}
    reasons = []
    for place, key in enumerate(pilot.keys):
        why = not_compared(metric.name, configs, [name for name, weight in compared[key].items() if weight])
        reasons.append(f"it is {why}" if why else pilot.problem(place, unit))
    # What can be said of the margin, of effects alone: an interaction, with twice the weight, is nothing to leave out.
    able = [
        place
        for place, key in enumerate(pilot.keys)
        if not reasons[place] and sum(weight for weight in compared[key].values() if weight > 0) < 1.5
    ]
    tested: dict[int, ForMargin] = {}
    if margin is not None and pilot.reach is not None and able and units >= 2:
        sums, counts = pilot.sums[pilot.measured][:, able], pilot.counts[pilot.measured][:, able]
        found = for_margin(sums, counts, margin, pilot.reach[able], units)
        tested = dict(zip(able, found, strict=True))
    rows = []
    for place, (key, reason) in enumerate(zip(pilot.keys, reasons, strict=True)):
        row = PlannedComparison(metric.name, key, is_primary, n, margin=margin, reason=reason)
        if not reason:
            column = pilot.column(place)
            error = column.standard_error if len(column.sums) else None
            of_mean = None if error is None else error * math.sqrt(len(column.sums) / units)  # of so many units
            smallest = verdict.smallest_difference(of_mean, units, critical, pilot.interval_reach(place, units))
            row = replace(row, smallest=smallest)
        if place in tested:
            size = n / units
            needed = [None if number is None else math.ceil(number * size) for number in tested[place].needed]
            row = replace(row, power=tested[place].power, questions=needed[0], in_half=needed[1], alone=needed[2])
        rows.append(row)
    return rows


def _contrasts(plan: Plan) -> dict[str, dict[Any, float]]:
    """Return the comparisons that the design declares, by a name for people: effects of a grid, or pairs."""
    baseline, run = plan.expansion.baseline, plan.run_folder(Path())
    values = factor_values({v.variant_id: v.changes for v in run.variants}, baseline.config.flat())
    same = [(one.changes, one.run_as) for one in run.same]
    pairs = {
        variant if against == baseline.variant_id else f"{variant} against {against}": {variant: 1.0, against: -1.0}
        for variant, against in plan.pairs
    }
    try:
        factors = read_factors(values, baseline.variant_id, planned=plan.experiment.design, same=same)
    except ValueError:  # pipelines that no factors tell apart
        return pairs
    if factors.kind not in GRIDS:
        return pairs
    found = {}
    for one in contrasts(factors):
        if one.kind in PRIMARY_KINDS:
            other = f" with {one.other}={one.other_level}" if one.kind == "interaction" else ""
            found[f"{one.factor}={one.level}{other}"] = one.weights
    return found


def _critical(pilots: Sequence[Pilot], alpha: float) -> float:
    """Return what |T| must reach in the family of these metrics; without all variants nobody knows how they depend."""
    sums = np.hstack([pilot.sums for pilot in pilots])
    has_all = all((pilot.counts > 0).any(axis=0).all() for pilot in pilots)
    return (
        randomization.step_down(sums).critical(alpha) if has_all and sums.any() else verdict.sidak(sums.shape[1], alpha)
    )


def _shrinks(critical: float, with_fewer: float) -> float:
    return 1 - (with_fewer + verdict.FOR_POWER) / (critical + verdict.FOR_POWER)


_FEWEST = randomization.smallest_n(randomization.ALPHA)
_NAMED = 5  # pairs that are written out
_HEADER = ("metric", "comparison", "questions", "can show", "margin", "power", "takes")
_WIDTH = 110  # of lines of prose
_TENTH = 10


def power_text(forecast: PowerForecast, command: str = "rag-lab plan EXPERIMENT.yaml") -> str:
    """Return the table and what follows from it, "" where nothing is compared; `command` is what would run a pilot."""
    notes = power_notes(forecast, command)
    return power_table(forecast).with_notes(notes) if forecast.rows else fill(" ".join(notes), _WIDTH)


def power_notes(forecast: PowerForecast, command: str = "rag-lab plan EXPERIMENT.yaml") -> list[str]:
    """Return what the columns mean and what follows, or what to do where nothing is known of the spread."""
    if not forecast.rows:
        why = f" ({forecast.source})" if forecast.source else ""
        what_to_do = SAYS["no_spread"].format(n=LEAST_QUESTIONS, why=why, command=command)
        return [what_to_do] if forecast.compares else []
    has_power = any(row.power is not None for row in forecast.rows)
    legend = SAYS["can_show"] + (f" {SAYS['power']}" if has_power else "")
    notes, by_reason, others = [legend, *_fewer(forecast)], dict[tuple[str, str], list[str]](), dict[str, list[str]]()
    for metric, of_metric in groupby(forecast.rows, key=lambda row: row.metric):
        rows = list(of_metric)
        if rows[0].is_primary or rows[0].margin is not None:
            for row in rows:
                if row.reason:
                    by_reason.setdefault((metric, row.reason), []).append(row.comparison)
        elif all(row.reason for row in rows):  # of the other metrics that by which the pilot has too little of them
            others.setdefault(rows[0].reason, []).append(metric)
    for (metric, why), names in by_reason.items():
        notes.append(f"Not plannable in {metric}: {listing(names)}, as {why}.")
    notes += [f"Not plannable: {listing(metrics)}, as {why}." for why, metrics in others.items()]
    if forecast.lacks and all(row.margin is None for row in forecast.rows):
        metric, tenth = forecast.rows[0].metric, plain(forecast.lacks / _TENTH)
        notes.append(SAYS["margin"].format(metric=metric, lacks=plain(forecast.lacks), tenth=tenth))
    return notes


def power_table(forecast: PowerForecast) -> Table:
    """Return a row each comparison of a metric that is primary or has a margin, and one for each other metric."""
    cells: list[tuple[str, ...]] = []
    for metric, of_metric in groupby(forecast.rows, key=lambda row: row.metric):
        several = list(of_metric)
        if not several[0].is_primary and several[0].margin is None:
            cells.append((metric, f"all {len(several)}", f"{several[0].n:,}", _smallest(several), "-", "-", "-"))
            continue
        for row in several:
            margin, power, takes = "-" if row.margin is None else f"{row.margin:g}", "-", "-"
            if row.reason:
                power = takes = "?"
            elif row.power is not None:
                power = f"{row.power:.2f}"
                takes = "> 20,000" if row.questions is None else f"{_two_digits(row.questions):,}"
            cells.append((metric, row.comparison, f"{row.n:,}", _smallest([row]), margin, power, takes))
    return Table(f"What it can show, by the spread seen in {forecast.source}", _HEADER, tuple(cells), 2)


def _smallest(rows: Sequence[PlannedComparison]) -> str:
    known = [row for row in rows if not row.reason]
    found = sorted({plain(row.smallest) for row in known if row.smallest is not None})
    if not found:
        return "nothing" if known else "?"
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _fewer(forecast: PowerForecast) -> list[str]:
    """Say what naming fewer variants or metrics would buy."""
    sentences = []
    for metric, of_metric in groupby(forecast.rows, key=lambda row: row.metric):
        rows = ((row.questions, row.in_half, row.alone) for row in of_metric)
        needs = [(all_, half, alone) for all_, half, alone in rows if all_ and half and alone]
        if len(needs) > 1:
            all_, half, alone = (_two_digits(max(n)) for n in zip(*needs, strict=True))
            of = {"n": len(needs), "metric": metric, "all": all_, "half_n": -(-len(needs) // 2), "half": half}
            sentences.append(SAYS["fewer_variants"].format(**of, alone=alone))
    if forecast.fewer_variants:
        half_off, one_off = (f"{share:.0%}" for share in forecast.fewer_variants)
        smaller = f"the smallest difference is {half_off} smaller, with one alone {one_off}"
        sentences.append(f"With half of the comparisons {smaller}.")
    if forecast.fewer_metrics:
        sentences.append(SAYS["fewer_metrics"].format(share=forecast.fewer_metrics))
    return sentences


def _two_digits(number: int) -> int:
    """Round up to two significant digits: a pilot knows no better."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
