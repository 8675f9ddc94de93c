"""What a search says of itself, stage by stage or by trials: how the winner was chosen, and what is proven of it."""

from __future__ import annotations

from rag_lab._kit.wording import counted, listing
from rag_lab.runs.race_record import Cost, RaceRecord


def search_sentences(race: RaceRecord, proof: Cost) -> list[str]:
    """Return how the winner was chosen, what its means are worth, and the cost; `proof` is what the proof took."""
    told = [race.stopped] if race.stopped else [_trials(race) if race.design == "optuna" else _stages(race)]
    return [*told, *_exploratory(race), *_paid(race, proof)]


def _stages(race: RaceRecord) -> str:
    best = ["baseline", *(one.standings[0].variant_id for one in race.rounds)]
    changed = [one.title for one, before, after in zip(race.rounds, best, best[1:], strict=False) if after != before]
    found = f"better was found in {listing(changed)}" if changed else "no stage found anything better"
    titles = listing([one.title for one in race.rounds]) if race.rounds else "none yet"
    return (
        f"One stage was varied after the other ({titles}), each beside what those before it had chosen; the best mean "
        f"in {race.metric} was carried on: {found}."
    )


def _trials(race: RaceRecord) -> str:
    n = len(race.rounds[0].standings) if race.rounds else 0
    return (
        f"{counted(n, 'variant')} were tried, each chosen by the results of those before it to improve "
        f"{listing(list(race.objectives))}; which of them no other beats in all objectives, the report of the trials "
        f"shows ({race.rounds[0].folder if race.rounds else 'rounds/1'}/report.html)."
    )


def _exploratory(race: RaceRecord) -> list[str]:
    """Return that means on questions that chose are no evidence, and what is."""
    if not race.winner:
        return []
    sizes = f"{race.sizes[0]:,}"
    return [
        f"Exploratory: the best means on the {sizes} questions that chose are too good, as they are the best of many "
        "on just these questions; they prove nothing, and their intervals and p-values hold for no choice by them.",
        f"The winner, {race.winner}, is proven against the baseline on {race.n_proof:,} other questions, which chose "
        "nothing: one comparison, whose p-value needs no correction for what was tried. What was not carried on has no "
        "proof"
        + (
            ", and settings of different stages that help only together may have been missed."
            if race.design == "staged"
            else "."
        ),
    ]


def _paid(race: RaceRecord, proof: Cost) -> list[str]:
    took = race.cost + proof
    if not took.calls:
        return []
    dollars = "" if not took.cost_usd else f" and {took.cost_usd:,.2f} USD"
    return [f"Search and proof took {took.calls:,} calls of chat models with {took.tokens:,} tokens{dollars}."]
