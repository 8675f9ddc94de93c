"""What a race or a search says of itself: how the winner was chosen and proven, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab._kit.wording import counted, listing, plain, signed, some_of
from rag_lab.runs.race_record import Cost, RaceRecord, Standing


def race_sentences(race: RaceRecord, proof: Cost) -> list[str]:
    """Return what a reader must know of a race or a search beside its tables; `proof` is what the proof took."""
    if race.design != "racing":
        rows = [one for _, _, one in dropped(race)]
        return [*search_sentences(race, proof), *filter(None, (_closest(race), _tied(rows), _failed(rows)))]
    chosen = [race.stopped] if race.stopped else [_how(race)]
    return [sentence for sentence in (*chosen, _asked(race), _paid(race, proof), *_dropped_sentences(race)) if sentence]


def dropped(race: RaceRecord) -> list[tuple[int, int, Standing]]:
    """Return every variant that was dropped, as (round, its questions, how it stood), the last dropped first."""
    rounds = enumerate(race.rounds, start=1)
    found = [(number, done.n_questions, one) for number, done in rounds for one in done.dropped]
    return sorted(found, key=lambda row: -row[0])


def _how(race: RaceRecord) -> str:
    sizes = [f"{n:,}" for n in race.sizes[: len(race.rounds) if race.winner else None]]
    rounds = f"{counted(len(sizes), 'round')} of {listing(sizes)} questions"
    if not race.winner:
        return f"{race.n_variants} variants race in {rounds}; none has won yet."
    return (
        f"{race.n_variants} variants raced in {rounds}, each of which dropped those that are worse in {race.metric} "
        "than another, by a bound that holds at every look. Of those left the winner has the best mean: "
        f"{race.winner} is proven against the baseline on {race.n_proof:,} other questions, which chose nothing: one "
        "comparison, whose p-value needs no correction for the variants that raced."
    )


def _asked(race: RaceRecord) -> str:
    if not race.rounds:
        return ""
    saved = 1 - race.n_asked / race.n_full
    return (
        f"A variant was asked a question {race.n_asked:,} times; all variants on all questions of rounds and proof "
        f"would be {race.n_full:,} times, so that {saved:.0%} were saved."
    )


def _paid(race: RaceRecord, proof: Cost) -> str:
    """Return the calls of chat models that were made and saved; '' where none was to be made."""
    took, full = race.cost + proof, race.full
    if not full.calls and not took.calls:
        return ""
    dollars = "" if not took.cost_usd else f" and {took.cost_usd:,.2f} USD"
    wanted = "" if not full.cost_usd else f" and {full.cost_usd:,.2f} USD"
    return (
        f"Rounds and proof took {took.calls:,} calls of chat models with {took.tokens:,} tokens{dollars}; before the "
        f"first call, a full sweep was estimated at {full.calls:,} calls with {full.tokens:,} tokens{wanted} at most."
    )


def _dropped_sentences(race: RaceRecord) -> list[str]:
    rows = [one for _, _, one in dropped(race)]
    return [_worse([one for one in rows if one.behind], race), _left(race), _failed(rows)]


def _worse(rows: Sequence[Standing], race: RaceRecord) -> str:
    """Return what is known of those that were dropped as worse than another, and how surely."""
    if not rows:
        return "No variant was shown to be worse than another." if race.winner else ""
    chance = "" if race.error is None else f" The best of all is among them with a chance of {race.error:.0%} at most."
    return (
        f"Given up: {counted(len(rows), 'dropped variant')} {'has' if len(rows) == 1 else 'have'} no proof. Each is "
        f"worse than another in {race.metric} on the questions of the rounds, and may be better in another "
        f"metric.{chance}"
    )


def _left(race: RaceRecord) -> str:
    """Return who was neither dropped nor proven."""
    if not race.winner:
        return ""
    last = [one.variant_id for one in race.rounds[-1].standings if one.stays]
    names = [name for name in last if name not in (race.winner, race.baseline)]
    return f"Neither dropped nor proven, as another has the best mean: {some_of(names)}." if names else ""


def _closest(race: RaceRecord) -> str:
    """Return the decision that was nearest, counted in standard errors; one between equals is told elsewhere."""
    calls = [(n, done.closest) for n, done in enumerate(race.rounds, start=1) if done.closest and done.closest.error]
    near = [(number, one) for number, one in calls if one is not None]
    if not near:
        return ""
    number, one = min(near, key=lambda row: row[1].difference / row[1].error)
    return (
        f"The closest decision was in round {number}: {one.kept} stayed before {one.dropped} by "
        f"{signed(one.difference)} with a standard error of {plain(one.error)}."
    )


def _tied(rows: Sequence[Standing]) -> str:
    names = [one.variant_id for one in rows if one.is_tied]
    if not names:
        return ""
    return f"Dropped with the very mean of one that stayed, since it comes later in the plan: {some_of(names)}."


def _failed(rows: Sequence[Standing]) -> str:
    names = [one.variant_id for one in rows if one.rank is None]
    return f"Dropped without any score: {some_of(names)}." if names else ""


def search_sentences(race: RaceRecord, proof: Cost) -> list[str]:
    """Return how the winner was chosen, what its means are worth, and the cost; `proof` is what the proof took."""
    told = [race.stopped] if race.stopped else [_trials(race) if race.design == "optuna" else _stages(race)]
    return [*told, *_exploratory(race), *_search_paid(race, proof)]


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


def _search_paid(race: RaceRecord, proof: Cost) -> list[str]:
    took = race.cost + proof
    if not took.calls:
        return []
    dollars = "" if not took.cost_usd else f" and {took.cost_usd:,.2f} USD"
    return [f"Search and proof took {took.calls:,} calls of chat models with {took.tokens:,} tokens{dollars}."]
