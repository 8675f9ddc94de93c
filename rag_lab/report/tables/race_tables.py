"""A race as tables: its rounds with what they took, and the variants that it dropped."""

from __future__ import annotations

from rag_lab._kit.numbers import DASH, plain, seconds
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.race_sentences import dropped
from rag_lab.report.tables.table import Table
from rag_lab.runs.race_record import Cost, RaceRecord, cost_of

_COSTS = ("seconds", "calls", "tokens")
ROUNDS_HEADER = ("round", "questions", "variants", "dropped", *_COSTS, "its report")


def race_tables(comparison: Comparison) -> list[Table]:
    """Return the rounds and the dropped variants; nothing where there was no race."""
    race = comparison.race
    if race is None or not race.rounds:
        return []
    rows = [_round(number, race) for number in range(1, len(race.rounds) + 1)]
    if race.winner:
        rows.append(("proof", f"{race.n_proof:,}", "2", DASH, *_cost(cost_of(comparison.run)), "this one"))
    rounds = Table(
        f"{comparison.run.name}: rounds of the {'race' if race.design == 'racing' else 'search'}",
        ROUNDS_HEADER,
        tuple(rows),
        words=1,
    )
    return [rounds, dropped_table(comparison.run.name, race)]


def dropped_table(name: str, race: RaceRecord) -> Table:
    """Return a row a dropped variant, the last dropped first, with its mean, and than whom it is worse."""
    header = ["variant", "dropped in round", "its questions", "place", race.metric]
    rows = [
        [one.label, str(number), f"{n:,}", DASH if one.rank is None else str(one.rank), plain(one.mean)]
        for number, n, one in dropped(race)
    ]
    if race.design != "racing":
        return Table(f"{name}: dropped in the search", tuple(header), tuple(map(tuple, rows)))
    worse = ([plain(one.least), one.behind or DASH] for _, _, one in dropped(race))
    rows = [[*row, *more] for row, more in zip(rows, worse, strict=True)]
    title = f"{name}: dropped in the race"
    return Table(title, (*header, "worse by at least", "than"), tuple(map(tuple, rows)), words=1)


def _round(number: int, race: RaceRecord) -> tuple[str, ...]:
    done = race.rounds[number - 1]
    counts = (f"{done.n_questions:,}", str(len(done.standings)), str(len(done.dropped)))
    return (f"{number} {done.title}".strip(), *counts, *_cost(done.cost), f"{done.folder}/report.html")


def _cost(cost: Cost) -> tuple[str, ...]:
    return seconds(cost.seconds), f"{cost.calls:,}", f"{cost.tokens:,}"
