"""What the questions of a plan can show, by the spread that an earlier run or a pilot saw."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rag_lab._kit.wording import counted, listing
from rag_lab.comparison.tables.comparable import not_compared
from rag_lab.data.sampling import clusters_of
from rag_lab.errors import RagLabError
from rag_lab.evaluation.metric import question_gap
from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.experiment.plan import Plan
from rag_lab.records import Question
from rag_lab.runs.run_folder import RunFolder
from rag_lab.statistics.bootstrap import Units
from rag_lab.statistics.effects.contrasts import PRIMARY_KINDS, contrasts
from rag_lab.statistics.effects.factors import GRIDS, factor_values, read_factors
from rag_lab.statistics.families import STRICT
from rag_lab.statistics.non_inferiority.planning import ForMargin, Pilot, for_margin, pilot_of
from rag_lab.statistics.per_question import per_question
from rag_lab.statistics.randomization import step_down
from rag_lab.statistics.scales import Scale, scales_of
from rag_lab.statistics.verdict import ALPHA, FOR_POWER, FamilyName, sidak, smallest_difference


def measured_questions(plan: Plan, metric: ParsedName) -> list[Question]:
    """Return the questions that are asked, or answered where the metric reads answers, and have the labels it needs."""
    asked = set(plan.answered if "answer" in metric.info.needs else plan.questions)
    return [q for q in plan.dataset.questions if q.question_id in asked and not question_gap(q, metric.info.needs)]


def n_units(plan: Plan, questions: Collection[Question]) -> int:
    """Return how many clusters and single questions they are."""
    clusters = clusters_of(questions, plan.experiment.clusters) or {}
    return len({(q.question_id in clusters, clusters.get(q.question_id, q.question_id)) for q in questions})


RESULTS = Path("results")


def earlier_scores(plan: Plan, runs: Sequence[RunFolder], metrics: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Return the scores of the plan's variants under their ids, and where they are from, or why there are none."""
    parts: dict[str, pd.DataFrame] = {}
    used: list[str] = []
    for run in runs:
        scores = run.scores()
        for variant_id, theirs in _same(plan, run).items():
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


def _same(plan: Plan, run: RunFolder) -> dict[str, str]:
    """Return which variant of a run is which of the plan's."""
    configs = {variant.variant_id: run.config(variant.variant_id) for variant in run.variants}
    by_config = {config.identity: name for name, config in configs.items() if config is not None}
    found = {v.variant_id: by_config.get(v.config.identity, v.variant_id) for v in plan.variants}
    return {ours: theirs for ours, theirs in found.items() if theirs in configs}


def runs_of(plan: Plan, given: Sequence[Path] = (), out: Path | None = None) -> list[RunFolder]:
    """Return the runs that were given, or else those of the experiment and of its pilot that hold scores.

    Args:
        plan: of the experiment.
        given: run folders, of which each must hold scores.
        out: the run folder of the experiment; `results/<name>` where None.

    Raises:
        RagLabError: if one that was given is no run folder.
    """
    if given:
        return [RunFolder.open(path) for path in given]
    found = []
    for path in (out or RESULTS / plan.experiment.name, RESULTS / pilot_name(plan.experiment.name)):
        try:
            run = RunFolder.open(path)
            run.scores()
        except RagLabError:
            continue
        found.append(run)
    return found


def pilot_of_experiment(experiment: ExperimentConfig, n_questions: int) -> ExperimentConfig:
    """Return the experiment on so few questions, under a name of its own, and without a margin: it proves nothing."""
    limits = experiment.limits.model_copy(update={"questions": n_questions})
    return experiment.model_copy(update={"name": pilot_name(experiment.name), "limits": limits, "margin": {}})


def pilot_name(name: str) -> str:
    """Return the name under which `results/` has the pilot of an experiment."""
    return f"{name[:58]}-pilot"


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
    return _Forecast(plan, metrics, compared, found, source).made()


@dataclass(frozen=True, slots=True)
class _Forecast:
    plan: Plan
    metrics: Sequence[ParsedName]
    compared: Mapping[str, Mapping[Any, float]]
    scores: pd.DataFrame
    source: str

    def made(self) -> PowerForecast:
        pilots, scales = self._pilots()
        primary, *others = (metric.name for metric in self.metrics)
        first, rest = _critical([pilots[primary]], self._alpha("primary")), [pilots[name] for name in others]
        later = _critical(rest, self._alpha("secondary")) if rest else first
        rows = [
            row for m in self.metrics for row in self._rows(m, pilots[m.name], first if m.name == primary else later)
        ]
        alone = _critical(rest[:1], self._alpha("secondary")) if len(rest) > 1 else None
        return PowerForecast(
            self.source,
            tuple(rows),
            lacks=self._lacks(primary, scales[primary]),
            fewer_variants=_fewer_variants(pilots[primary], first, self._alpha("primary")),
            fewer_metrics=None if alone is None else _shrinks(later, alone),
        )

    def _pilots(self) -> tuple[dict[str, Pilot], dict[str, Scale]]:
        questions = per_question(self.scores)
        infos = {metric.name: metric.info for metric in self.metrics}
        known = {name: info.scale for name, info in infos.items()}
        scales = known | scales_of(self.scores, known)
        clusters = clusters_of(self.plan.dataset.questions, self.plan.experiment.clusters)
        return {name: pilot_of(questions, name, self.compared, scales[name], clusters) for name in infos}, scales

    def _alpha(self, family: FamilyName) -> float:
        return STRICT[family] if self.plan.experiment.strict else ALPHA

    def _rows(self, metric: ParsedName, pilot: Pilot, critical: float) -> list[PlannedComparison]:
        measured = measured_questions(self.plan, metric)
        n, units = len(measured), n_units(self.plan, measured)
        size = n / units if units else 1.0
        margin = self.plan.margins.get(metric.name)
        tested = self._for_margin(metric.name, pilot, margin, units)
        rows = []
        for place, key in enumerate(pilot.keys):
            what = (metric.name, key, metric is self.metrics[0], n)
            if reason := self._withheld(metric.name, key) or pilot.problem(
                place, "question" if units == n else "cluster"
            ):
                rows.append(PlannedComparison(*what, margin=margin, reason=reason))
                continue
            error, reach = _error(pilot.column(place), units), pilot.interval_reach(place, units)
            smallest = smallest_difference(error, units, critical, reach)
            planned = tested.get(key)
            power = planned.power if planned else None
            asked = (
                [(None if number is None else math.ceil(number * size)) for number in planned.needed]
                if planned
                else [None] * 3
            )
            rows.append(PlannedComparison(*what, smallest, margin, power, *asked))
        return rows

    def _withheld(self, metric: str, key: str) -> str:
        configs = {variant.variant_id: variant.config for variant in self.plan.variants}
        why = not_compared(metric, configs, [name for name, weight in self.compared[key].items() if weight])
        return f"it is {why}" if why else ""

    def _for_margin(self, metric: str, pilot: Pilot, margin: float | None, units: int) -> dict[str, ForMargin]:
        """Return what can be said of the margin, of effects alone: an interaction is nothing to leave out."""
        weights = [[weight for weight in self.compared[key].values() if weight > 0] for key in pilot.keys]
        effects = [
            place for place, of_key in enumerate(weights) if sum(of_key) < 1.5
        ]  # an interaction has twice as many
        able = [k for k in effects if not pilot.problem(k) and not self._withheld(metric, pilot.keys[k])]
        if margin is None or pilot.reach is None or not able or units < 2:
            return {}
        rows = pilot.measured
        sums, counts = pilot.sums[rows][:, able], pilot.counts[rows][:, able]
        found = for_margin(sums, counts, margin, pilot.reach[able], units)
        return {pilot.keys[place]: one for place, one in zip(able, found, strict=True)}

    def _lacks(self, metric: str, scale: Scale) -> float | None:
        ours = self.scores[(self.scores["metric"] == metric) & (self.scores["status"] == "scored")]
        values = ours.loc[ours["variant_id"] == self.plan.expansion.baseline.variant_id, "value"].astype(float)
        return None if scale.best is None or values.empty else abs(scale.best - math.fsum(values) / len(values))


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


def _error(column: Units, n_units: int) -> float | None:
    """Return the standard error that the mean of so many units will have."""
    error = column.standard_error if len(column.sums) else None
    return None if error is None else error * math.sqrt(len(column.sums) / n_units)


def _critical(pilots: Sequence[Pilot], alpha: float) -> float:
    """Return what |T| must reach in the family of these metrics; without all variants nobody knows how they depend."""
    sums = np.hstack([pilot.sums for pilot in pilots])
    has_all = all((pilot.counts > 0).any(axis=0).all() for pilot in pilots)
    return step_down(sums).critical(alpha) if has_all and sums.any() else sidak(sums.shape[1], alpha)


def _fewer_variants(pilot: Pilot, critical: float, alpha: float) -> tuple[float, float] | None:
    if len(pilot.keys) < 3:
        return None
    half = Pilot(pilot.keys[::2], pilot.sums[:, ::2], pilot.counts[:, ::2], None)
    return _shrinks(critical, _critical([half], alpha)), _shrinks(critical, sidak(1, alpha))


def _shrinks(critical: float, with_fewer: float) -> float:
    return 1 - (with_fewer + FOR_POWER) / (critical + FOR_POWER)
