"""Races and searches as a row of sweeps: one a round, which measures what decides alone, who stays, and the proof."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_lab.data.sampling import clusters_of
from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.built_in_designs import OPTUNA, RaceConfig
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.questions import SEARCHES
from rag_lab.runs.run_manifest import ClosestCall, RoundRecord, Standing
from rag_lab.statistics import bounded_mean

if TYPE_CHECKING:
    import pandas as pd

    from rag_lab.statistics.summaries import Scale

ELSEWHERE = "that are asked in another round, in the proof, or not at all"
_ROUND = "Round {} of a race, which drops variants and proves nothing:"
_LATER = "Round {} of a race, which proves nothing, as its variants were chosen on some of its questions:"
_SEARCH = "Round {} of a search, which chooses variants on these questions and so proves nothing:"
_LONGEST = 64  # of an experiment's name


@dataclass(frozen=True, slots=True)
class Looks:
    """How the rounds of a race look at its questions.

    `error` is the chance that one comparison ever drops the better of two; over all variants beside the best it is as
    many times that at most.
    """

    units: Mapping[str, str]  # the questions as drawn, each with what it is drawn with: its cluster or itself
    largest: int  # the most questions of a unit
    ends: tuple[int, ...]  # how many units each round has seen at its end
    error: float


def race_standings(
    scores: pd.DataFrame, metric: str, scale: Scale, labels: Mapping[str, str], baseline: str, looks: Looks
) -> tuple[Standing, ...]:
    """Return how the variants of a round stand, best first; those stay that no other is shown to be better than.

    A variant is dropped where the bound of what another is better by, which holds at all looks at once (see
    `lower_bound`), lies above zero. The baseline stays, and one without scores does not.
    """
    kept_scale = _kept_scale(scores, metric, scale)
    values, width = _values(scores, metric, kept_scale.worst), kept_scale.width
    found = []
    for one in standings(scores, metric, scale, labels, baseline, len(labels)):
        ours, bounds = values.get(one.variant_id, {}), dict[str, float]()
        if width and one.stays and one.variant_id != baseline:
            others = [name for name in labels if name in values and name != one.variant_id]
            bounds = {name: _ahead(values[name], ours, scale.sign, width, looks) for name in others}
        behind = max(bounds, key=lambda name: bounds[name], default="")
        is_worse = bool(behind) and bounds[behind] > 0
        found.append(replace(one, stays=False, behind=behind, least=bounds[behind]) if is_worse else one)
    return tuple(found)


def _ahead(first: Mapping[str, float], other: Mapping[str, float], sign: int, width: float, looks: Looks) -> float:
    """Return what the mean of the first is better by at least, on the questions that both have; below 0 not at all."""
    shared = [name for name in looks.units if name in first and name in other]
    sums: dict[str, float] = {}
    for name in shared:
        sums[looks.units[name]] = sums.get(looks.units[name], 0.0) + sign * (first[name] - other[name])
    gaps = [total / looks.largest for total in sums.values()]  # of which the mean has the sign of that of questions
    if math.fsum(gaps) <= 0 or not bounded_mean.is_above(gaps, 0.0, width, looks.error, looks.ends):
        return -width
    return bounded_mean.lower_bound(gaps, width, looks.error, looks.ends) * looks.largest * len(gaps) / len(shared)


def standings(
    scores: pd.DataFrame, metric: str, scale: Scale, labels: Mapping[str, str], baseline: str, n_kept: int
) -> tuple[Standing, ...]:
    """Return how the variants of a round stand, best first, and which `n_kept` beside the baseline stay.

    Of none to be kept the best stays, whether it is the baseline or not.

    Of variants with equal means the earlier in `labels` (variant to label, in the order of the plan) stays. One without
    scores stands last and does not stay, so that fewer may.
    """
    from rag_lab.statistics.summaries import ranking

    rows = ranking(scores, metric, _kept_scale(scores, metric, scale)).to_dict("records")
    ranked = {str(row["variant_id"]): row for row in rows if row["scored"] + row["failed"]}
    in_order = sorted((name for name in labels if name in ranked), key=lambda name: int(ranked[name]["rank"]))
    kept = [name for name in in_order if name != baseline][:n_kept]
    last = ranked[kept[-1]]["rank"] if kept else None
    found = []
    for name in in_order:
        row, stays = ranked[name], name == baseline or name in kept
        mean = row["mean"] if row["ranked_by"] is None else row["ranked_by"]
        place = (int(row["rank"]), None if mean is None else float(mean), int(row["scored"]), int(row["asked"]))
        found.append(Standing(name, labels[name], *place, stays, is_tied=not stays and row["rank"] == last))
    found += [Standing(name, label, stays=name == baseline) for name, label in labels.items() if name not in ranked]
    return tuple(found if n_kept else (replace(one, stays=one is found[0]) for one in found))


def closest_call(
    scores: pd.DataFrame, metric: str, scale: Scale, found: Sequence[Standing], baseline: str
) -> ClosestCall | None:
    """Return how near the first dropped variant was to the last that stays; None where that cannot be told."""
    raced = [one for one in found if one.variant_id != baseline and one.rank is not None]
    kept, dropped = [one for one in raced if one.stays], [one for one in raced if not one.stays]
    if not kept or not dropped:
        return None
    pair = (kept[-1].variant_id, dropped[0].variant_id)
    values = _values(scores, metric, _kept_scale(scores, metric, scale).worst)
    first, second = (values.get(name, {}) for name in pair)
    gaps = [scale.sign * (first[name] - second[name]) for name in sorted(first.keys() & second.keys())]
    if len(gaps) < 2:
        return None
    mean = math.fsum(gaps) / len(gaps)
    spread = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1))
    return ClosestCall(*pair, mean, spread / math.sqrt(len(gaps)))


def _kept_scale(scores: pd.DataFrame, metric: str, scale: Scale) -> Scale:
    """Return the scale of a metric, without a bound that a score lies beyond."""
    from rag_lab.statistics.summaries import scales_of

    return scales_of(scores, {metric: scale}).get(metric, scale)


def _values(scores: pd.DataFrame, metric: str, worst: float | None) -> dict[str, dict[str, float]]:
    """Return by variant what each question counts: its mean, failed repeats at the worst value where there is one."""
    from rag_lab.statistics import summaries

    questions = summaries.per_question(scores, [metric])
    judged = questions.assign(value=summaries.with_failures_at(questions, worst)).dropna(subset="value")
    found: dict[str, dict[str, float]] = {}
    for variant, name, value in zip(judged["variant_id"], judged["question_id"], judged["value"], strict=True):
        found.setdefault(str(variant), {})[str(name)] = float(value)
    return found


@dataclass(frozen=True, slots=True)
class Round:
    """A sweep that a design asks for; `standings` says who stays, of scores, metric, its scale, labels and baseline."""

    number: int
    plan: Plan
    heading: str
    standings: Callable[..., tuple[Standing, ...]]
    title: str = ""


# Takes what each round came to, returns plan and winner of the proof.
Rounds = Generator[Round, RoundRecord, tuple[Plan, str]]


def looks_of(plan: Plan) -> Looks:
    """Return how the rounds of a race look at its questions, clusters as wholes."""
    clusters = clusters_of(plan.dataset.questions, plan.experiment.clusters) or {}
    sizes = Counter(clusters.values())
    units = {name: clusters.get(name, name) for name in plan.rounds[-1]}
    n_units = [len({units[name] for name in asked}) for asked in plan.rounds]
    error = (plan.experiment.race or RaceConfig()).error
    return Looks(units, max(sizes.values(), default=1), tuple(n_units), error / (len(plan.variants) - 1))


def round_plan(plan: Plan, number: int, variants: Collection[str]) -> Plan:
    """Return the sweep of round `number` (from 1) over the baseline and the `variants` that are left."""
    ids, given = set(plan.rounds[number - 1]), plan.experiment
    wanted = {one.name for one in aims(plan)} if given.design == OPTUNA else {plan.deciding_metric.name}
    places = [place for place, known in enumerate(plan.metrics) if known.name in wanted]
    metrics = tuple(plan.metrics[place] for place in places)
    order = [question.question_id for question in plan.dataset.questions]
    asked = tuple(name for name in order if name in ids)
    heading, tail = _ROUND if number == 1 else _LATER, f"_round_{number}"
    if given.design in SEARCHES:
        heading = _SEARCH
    changed = {
        "name": f"{given.name[: _LONGEST - len(tail)]}{tail}",
        "question": f"{heading.format(number)} {given.question}",
        "metrics": [given.metrics[place] for place in places],
        "margin": {},
    }
    return replace(
        with_variants(plan, variants),
        experiment=given.model_copy(update=changed),
        questions=asked,
        answered=asked if any(metric.info.reads_answers for metric in metrics) else (),
        metrics=metrics,
        apart={ELSEWHERE: frozenset(order) - ids},
    )


def aims(plan: Plan) -> list[ParsedName]:
    """Return the metrics that trials are to improve: the objectives, else the first two."""
    given = plan.experiment.objectives or plan.experiment.metrics[:2]
    return [known for known, name in zip(plan.metrics, plan.experiment.metrics, strict=True) if name in given]


def full_plan(plan: Plan) -> Plan:
    """Return the sweep that the race stands for: all variants on all questions of the last round and the proof."""
    order, rounds = [question.question_id for question in plan.dataset.questions], plan.rounds[-1]
    answered = {*plan.answered, *(rounds if plan.deciding_metric.info.reads_answers else ())}
    asked = {*plan.questions, *rounds}
    ids, of_answers = (tuple(name for name in order if name in some) for some in (asked, answered))
    return replace(plan, questions=ids, answered=of_answers, rounds=(), apart={})


def with_variants(plan: Plan, variants: Collection[str]) -> Plan:
    """Return the plan of the baseline and these variants, without rounds: that of the proof, of the winner."""
    left = {plan.expansion.baseline.variant_id, *variants}
    chosen = tuple(one for one in plan.variants if one.variant_id in left)
    same = tuple(one for one in plan.expansion.same if one.run_as in left)
    return replace(plan, expansion=replace(plan.expansion, variants=chosen, same=same), rounds=())


def staying(done: RoundRecord, baseline: str) -> list[str]:
    """Return the variants beside the baseline that a round keeps."""
    return [one.variant_id for one in done.standings if one.stays and one.variant_id != baseline]


def best_of(done: RoundRecord, baseline: str) -> str:
    """Return the variant with the best mean of those that stay; of all, where the baseline alone is left."""
    return next(iter(staying(done, baseline) or [o.variant_id for o in done.standings if o.variant_id != baseline]))
