"""A race or a search as a row of ordinary sweeps: one a round, which measures what decides alone, and the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, replace

from rag_lab.data.sampling import clusters_of
from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.designs.combinations import OPTUNA
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.config import RaceConfig
from rag_lab.experiment.race.drop import Looks
from rag_lab.experiment.race.objectives import objectives
from rag_lab.experiment.race.questions import SEARCHES, deciding
from rag_lab.runs.race_record import RoundRecord, Standing

ELSEWHERE = "that are asked in another round, in the proof, or not at all"
_ROUND = "Round {} of a race, which drops variants and proves nothing:"
_LATER = "Round {} of a race, which proves nothing, as its variants were chosen on some of its questions:"
_SEARCH = "Round {} of a search, which chooses variants on these questions and so proves nothing:"
_LONGEST = 64  # of an experiment's name


@dataclass(frozen=True, slots=True)
class Round:
    """A sweep that a design asks for; `standings` says who stays, of scores, metric, its scale, labels and baseline."""

    number: int
    plan: Plan
    heading: str
    standings: Callable[..., tuple[Standing, ...]]
    title: str = ""


Rounds = Generator[
    Round, RoundRecord, tuple[Plan, str]
]  # takes what each came to, returns plan and winner of the proof


def deciding_metric(plan: Plan) -> ParsedName:
    """Return the metric that decides who is dropped."""
    found = deciding(plan.experiment.metrics)
    if found is None:
        raise ValueError("a plan of a race was made without a metric that decides")
    return found


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
    ids, places = set(plan.rounds[number - 1]), _deciding(plan)
    reads_answers = any(plan.metrics[place].info.reads_answers for place in places)
    order = [question.question_id for question in plan.dataset.questions]
    asked = tuple(name for name in order if name in ids)
    given, tail = plan.experiment, f"_round_{number}"
    experiment = given.model_copy(
        update={
            "name": f"{given.name[: _LONGEST - len(tail)]}{tail}",
            "question": f"{_headed(plan, number)} {given.question}",
            "metrics": [given.metrics[place] for place in places],
            "margin": {},
        }
    )
    return replace(
        _of(plan, variants),
        experiment=experiment,
        questions=asked,
        answered=asked if reads_answers else (),
        metrics=tuple(plan.metrics[place] for place in places),
        apart={ELSEWHERE: frozenset(order) - ids},
    )


def _headed(plan: Plan, number: int) -> str:
    if plan.experiment.design in SEARCHES:
        return _SEARCH.format(number)
    return (_ROUND if number == 1 else _LATER).format(number)


def _deciding(plan: Plan) -> list[int]:
    """Return the places of the metrics that a round measures: the one that decides, or the objectives of trials."""
    wanted = {deciding_metric(plan).name} if plan.experiment.design != OPTUNA else {one.name for one in aims(plan)}
    return [place for place, known in enumerate(plan.metrics) if known.name in wanted]


def aims(plan: Plan) -> list[ParsedName]:
    """Return the metrics that trials are to improve: the objectives, else the first two."""
    given = objectives(plan.experiment)
    return [known for known, name in zip(plan.metrics, plan.experiment.metrics, strict=True) if name in given]


def proof_plan(plan: Plan, winner: str) -> Plan:
    """Return the sweep of the winner and the baseline on the questions that chose nothing."""
    return _of(plan, [winner])


def full_plan(plan: Plan) -> Plan:
    """Return the sweep that the race stands for: all variants on all questions of the last round and the proof."""
    order = [question.question_id for question in plan.dataset.questions]
    rounds = set(plan.rounds[-1])
    answered = {*plan.answered, *(rounds if deciding_metric(plan).info.reads_answers else ())}
    asked = {*plan.questions, *rounds}
    return replace(
        plan,
        questions=tuple(name for name in order if name in asked),
        answered=tuple(name for name in order if name in answered),
        rounds=(),
        apart={},
    )


def _of(plan: Plan, variants: Collection[str]) -> Plan:
    """Return the plan of the baseline and these variants, without rounds."""
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
