"""What a manifest holds (what was spent, what may be retried, which model answered), and `race.json` of a race."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import counted, listing
from rag_lab.models.config import alternatives
from rag_lab.runs.run_folder import RunFolder, read_record

MEASURES = ("calls", "tokens", "cost_usd", "minutes")
COLUMNS = ("purpose", *(f"{measure}_{when}" for measure in MEASURES for when in ("estimated", "spent")))
FAILOVER_KEY = "played_by"  # of a variant in the manifest: `first | second`, and those of them that were chosen
Played = Mapping[str, Sequence[str]]
ABSENT = "-"
# What may change a number, the likeliest suspects first. Times, counts and paths change with every run.
_COMPARED = (
    "dataset", "language", "models", "judge", "judge_language", "metric_embedding", "seeds", "commit", "dirty", "code",
    "versions", "problems",
)  # fmt: skip
_PLAN = ("question", "dataset", "baseline", "metrics", "repeats", "clusters")


def of_calls(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of stages and metrics that call: older manifests also have those whose minutes are other work."""
    return [row for row in rows if row.get("calls_estimated") or row.get("calls_spent")]


def total(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums; one of which a part is not known is not known."""
    sums: dict[str, Any] = dict.fromkeys(COLUMNS[1:], 0)
    for row in rows:
        add(sums, {name: row.get(name) for name in sums})
    return {"purpose": "total"} | sums


def add(sums: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add `more` to `sums`; what is not known makes a sum that is not known."""
    for measure, value in more.items():
        sums[measure] = None if value is None or sums[measure] is None else sums[measure] + value


def minutes_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Say how many minutes of calls were estimated and spent."""
    sums = total(rows)
    estimated, actual = sums["minutes_estimated"], sums["minutes_spent"]
    took = "an unknown time" if actual is None else f"{actual:,.1f} minutes"
    expected = "no estimate was possible" if estimated is None else f"{estimated:,.1f} were estimated"
    return f"model calls took {took}, side by side or not ({expected})"


@dataclass(frozen=True, slots=True)
class Retryable:
    """Questions of a variant that failed or fell back, and scores that failed, which another attempt may cure."""

    questions: int = 0
    scores: int = 0

    @classmethod
    def of(cls, record: Mapping[str, Any] | None) -> "Retryable":
        """Read a variant's record, or its part of a manifest; one that does not count them has none."""
        return cls(**(record or {}).get("curable", {}))

    def __add__(self, other: "Retryable") -> "Retryable":
        return Retryable(self.questions + other.questions, self.scores + other.scores)

    @property
    def total(self) -> int:
        """Questions and scores together."""
        return self.questions + self.scores

    def __str__(self) -> str:
        parts = ((self.questions, "question"), (self.scores, "score"))
        return " and ".join(counted(n, noun) for n, noun in parts if n)


def retry_sentence(found: Mapping[str, Retryable], *, is_left: bool = False) -> str:
    """Return one sentence on what a start of the sweep tries again, or has left, by variant; '' where it is nothing."""
    counts = ", ".join(f"{one} of {name}" for name, one in found.items() if one.total)
    if is_left and counts:
        return f"Another attempt may cure {counts}: start the same command again and it tries them again."
    return f"Tried again, since another attempt may cure what failed: {counts}." if counts else ""


def answering_models(text: str, variants: Iterable[Played]) -> list[str]:
    """Return who played a role that is named so, in any of these variants: of one model, that one."""
    return list(dict.fromkeys(name for played in variants for name in played.get(text, ()))) or [text]


def failover_sentences(variants: Mapping[str, Played]) -> list[str]:
    """Return a sentence for each `first | second` of a run; `variants` are what they are called, and who played."""
    sentences = []
    for text in dict.fromkeys(text for played in variants.values() for text in played):
        first = alternatives(text)[0]
        groups: dict[str, list[str]] = {}
        for variant, played in variants.items():
            if text in played:
                groups.setdefault(" and then ".join(played[text]), []).append(variant)
        one, *others = groups
        which = f"{one} played the role throughout" + ("" if one == first else f", since {first} did not answer")
        if others:
            which = listing([f"{names} in {listing(those)}" for names, those in groups.items()])
            which = f"the role was played by {which}: what differs between these variants may be the model's doing"
        sentences.append(f"Of {text}, {which}.")
    return sentences


@dataclass(frozen=True, slots=True)
class Change:
    """One line that differs; `ABSENT` where a run does not have it."""

    what: str
    first: str
    second: str


def manifest_diff(first: RunFolder, second: RunFolder) -> list[Change]:
    """Return what differs in plan, variants, data, models, code and packages of two runs, in this order."""
    left, right = _lines(first), _lines(second)
    lines = (Change(key, left.get(key, ABSENT), right.get(key, ABSENT)) for key in dict.fromkeys([*left, *right]))
    return [line for line in lines if line.first != line.second]


def suspects(changes: Iterable[Change]) -> str:
    """Return one sentence: what to look at where the runs' numbers differ."""
    rooms = list(dict.fromkeys(change.what.partition(": ")[0] for change in changes))
    if not rooms:
        return "The manifests name no difference: plan, data, models, code and packages are the same."
    return f"The runs differ in {', '.join(rooms)}; where their numbers differ, a changed line is the suspect."


def _lines(run: RunFolder) -> dict[str, str]:
    """Return name and value of everything that is compared, in order."""
    manifest = run.manifest()
    found = {f"plan: {name}": plain_text(getattr(run, name), ABSENT) for name in _PLAN}
    for name, ids in (("questions", run.questions), ("answered", run.answered)):  # runs that differ in between differ
        found[f"plan: {name}"] = f"{len(ids)}: {ids[0]} … {ids[-1]} ({digest(ids)[:8]})" if ids else "none"
    for plan in run.variants:
        state = manifest.get("variants", {}).get(plan.variant_id, {})
        found[f"variant {plan.variant_id}: status"] = plain_text(state.get("status", "not run"), ABSENT)
        found[f"variant {plan.variant_id}: configuration"] = plain_text(state.get("config_identity"), ABSENT)[:12]
    for room in _COMPARED:
        found |= _flat(room, manifest.get(room), depth=4)
    return found


def _flat(name: str, value: Any, depth: int) -> dict[str, str]:
    if isinstance(value, list) and len(value) == 1:
        return _flat(name, value[0], depth)
    if isinstance(value, Mapping) and depth:
        found: dict[str, str] = {}
        for part, inner in value.items():
            found |= _flat(f"{name}.{part}" if ": " in name else f"{name}: {part}", inner, depth - 1)
        return found
    return {name if ": " in name else f"{name}: {name}": plain_text(value, ABSENT)}


def plain_text(value: Any, absent: str) -> str:
    """Write a JSON value for people: mappings and lists on one line, `absent` where there is none."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain_text(inner, absent)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(plain_text(inner, absent) for inner in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return absent if value is None else str(value)


RACE_FILE = "race.json"
ROUNDS_FOLDER = "rounds"  # each round is a run folder in it, named by its number, from 1


@dataclass(frozen=True, slots=True)
class Standing:
    """How a variant stands after a round: place and mean, with failed questions at the worst value if there is one."""

    variant_id: str
    label: str
    rank: int | None = None
    mean: float | None = None
    scored: int = 0
    asked: int = 0
    stays: bool = False
    is_tied: bool = False  # dropped by a search with the very mean of one that stays
    behind: str = ""  # dropped by a race, as this one is better by `least` at least
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

    def __add__(self, other: "Cost") -> "Cost":
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
    """A race as far as it has run."""

    plan: str  # its digest
    metric: str
    sizes: tuple[int, ...]  # the questions of the rounds that are planned
    n_variants: int
    n_proof: int
    repeats: int
    full: Cost  # of a sweep of all variants on all questions, as estimated before the first call
    rounds: tuple[RoundRecord, ...] = ()
    winner: str = ""  # '' before the last round
    stopped: str = ""  # why it went no further
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
