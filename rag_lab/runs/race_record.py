"""race.json: whom the rounds of a race dropped, and what that took beside what a full sweep would take."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from rag_lab.runs.run_folder import RunFolder, read_record
from rag_lab.runs.run_manifest import total

RACE_FILE = "race.json"
ROUNDS_FOLDER = "rounds"  # each round is a run folder in it, named by its number, from 1


@dataclass(frozen=True, slots=True)
class Standing:
    """How a variant stands after a round: place and mean, with failed questions at the worst value where there is one.

    `rank` and `mean` are None without scores; `is_tied`: dropped by a search with the very mean of one that stays.
    `behind`: dropped by a race, as this one is better by `least` at least.
    """

    variant_id: str
    label: str
    rank: int | None = None
    mean: float | None = None
    scored: int = 0
    asked: int = 0
    stays: bool = False
    is_tied: bool = False
    behind: str = ""
    least: float | None = None


@dataclass(frozen=True, slots=True)
class ClosestCall:
    """By how much the last variant that stays was before the first that was dropped, and the standard error of that."""

    kept: str
    dropped: str
    difference: float
    error: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What chat models were called for, and seconds; None is not known. An estimate is at most that."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    call_minutes: float | None = 0.0  # of calls, one after the other
    seconds: float | None = 0.0  # that variants ran, one after the other

    def __add__(self, other: Cost) -> Cost:
        values: zip[tuple[Any, Any]] = zip(astuple(self), astuple(other), strict=True)
        sums: list[Any] = [None if one is None or more is None else one + more for one, more in values]
        return Cost(*sums)


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round: `n_questions` include those of the rounds before; `standings` are best first."""

    folder: str  # within the run folder
    n_questions: int
    standings: tuple[Standing, ...]
    cost: Cost
    closest: ClosestCall | None = None
    unsettled: int = 0  # failures that another attempt may cure
    title: str = ""  # what was varied, where that is not all

    @property
    def dropped(self) -> tuple[Standing, ...]:
        """The variants that the round dropped, best first."""
        return tuple(one for one in self.standings if not one.stays)


@dataclass(frozen=True, slots=True)
class RaceRecord:
    """A race as far as it has run.

    `plan` tells the plan by a digest; `sizes` are the questions of the rounds that are planned; `winner` is '' before
    the last round, and `stopped` says why it went no further.
    """

    plan: str
    metric: str
    sizes: tuple[int, ...]
    n_variants: int
    n_proof: int
    repeats: int
    full: Cost  # of a sweep of all variants on all questions, as estimated before the first call
    rounds: tuple[RoundRecord, ...] = ()
    winner: str = ""
    stopped: str = ""
    design: str = "racing"
    objectives: tuple[str, ...] = ()  # of trials
    baseline: str = ""
    error: float | None = None  # of a race: the chance that the best of all was ever dropped

    @property
    def title(self) -> str:
        """What it is, as a heading."""
        return {"staged": "Stage by stage", "optuna": "The trials"}.get(self.design, "The race")

    @property
    def n_full(self) -> int:
        """How often a full sweep would ask a variant a question."""
        return self.repeats * self.n_variants * (self.sizes[-1] + self.n_proof)

    @property
    def n_asked(self) -> int:
        """How often the rounds and the proof ask a variant a question, results of earlier rounds counted once."""
        if self.design != "racing":  # whose rounds ask the same questions, one carried on from each to the next
            new_ones = sum(len(one.standings) for one in self.rounds) - max(0, len(self.rounds) - 1)
            return self.repeats * (new_ones * self.sizes[-1] + (2 * self.n_proof if self.winner else 0))
        before = [0, *(one.n_questions for one in self.rounds)]
        new = (len(one.standings) * (one.n_questions - n) for one, n in zip(self.rounds, before, strict=False))
        return self.repeats * (sum(new) + (2 * self.n_proof if self.winner else 0))

    @property
    def cost(self) -> Cost:
        """What the rounds took, without the proof."""
        return sum((one.cost for one in self.rounds), Cost())


def cost_of(run: RunFolder) -> Cost:
    """Return what a run has taken, all its starts together, as its manifest says; nothing without one."""
    manifest = run.manifest()
    sums = total(manifest.get("spent", []))
    seconds = math.fsum(float(state.get("seconds", 0.0)) for state in manifest.get("variants", {}).values())
    return Cost(sums["calls_spent"], sums["tokens_spent"], sums["cost_usd_spent"], sums["minutes_spent"], seconds)


def read_race(run: Path) -> RaceRecord | None:
    """Return the race of a run folder, or None where it was none."""
    return read_record(run / RACE_FILE, RaceRecord, "it holds no race")
