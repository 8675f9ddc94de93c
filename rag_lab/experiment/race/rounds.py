"""A race as a row of ordinary sweeps: one a round, which measures the deciding metric alone, and the proof."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.config import RaceConfig
from rag_lab.experiment.race.questions import deciding

ELSEWHERE = "that the race asks in another round, in its proof, or not at all"
_ROUND = "Round {} of a race, which drops variants and proves nothing:"
_LATER = "Round {} of a race, which proves nothing, as its variants were chosen on some of its questions:"
_LONGEST = 64  # of an experiment's name


def deciding_metric(plan: Plan) -> ParsedName:
    """Return the metric that decides who is dropped."""
    found = deciding(plan.experiment.metrics)
    if found is None:
        raise ValueError("a plan of a race was made without a metric that decides")
    return found


def kept_after_rounds(plan: Plan) -> list[int]:
    """Return how many variants beside the baseline are left after each round that is run."""
    return (plan.experiment.race or RaceConfig()).kept(len(plan.variants) - 1, len(plan.rounds))


def round_plan(plan: Plan, number: int, variants: Collection[str]) -> Plan:
    """Return the sweep of round `number` (from 1) over the baseline and the `variants` that are left."""
    metric, ids = deciding_metric(plan), set(plan.rounds[number - 1])
    place = next(place for place, known in enumerate(plan.metrics) if known.name == metric.name)
    order = [question.question_id for question in plan.dataset.questions]
    asked = tuple(name for name in order if name in ids)
    given, tail = plan.experiment, f"_round_{number}"
    experiment = given.model_copy(
        update={
            "name": f"{given.name[: _LONGEST - len(tail)]}{tail}",
            "question": f"{(_ROUND if number == 1 else _LATER).format(number)} {given.question}",
            "metrics": [given.metrics[place]],
            "margin": {},
        }
    )
    return replace(
        _of(plan, variants),
        experiment=experiment,
        questions=asked,
        answered=asked if metric.info.reads_answers else (),
        metrics=(plan.metrics[place],),
        apart={ELSEWHERE: frozenset(order) - ids},
    )


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
