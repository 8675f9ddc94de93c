"""What differs between two runs: where their numbers differ, the changed line is the suspect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_lab.runs.run_folder import RunFolder

ABSENT = "-"
# What may change a number, the likeliest suspects first. Times, counts and paths change with every run.
_TOLD = (
    "dataset",
    "language",
    "models",
    "judge",
    "judge_language",
    "metric_embedding",
    "seeds",
    "commit",
    "dirty",
    "code",
    "versions",
    "problems",
)
_PLAN = ("question", "dataset", "baseline", "metrics", "repeats", "clusters")


@dataclass(frozen=True, slots=True)
class Change:
    """One line that differs; `ABSENT` where a run does not have it."""

    what: str
    first: str
    second: str


def manifest_diff(first: RunFolder, second: RunFolder) -> list[Change]:
    """Return what differs in plan, variants, data, models, code and packages of two runs, in this order.

    A model's identity is compared whole and told by the keys in which it differs.
    """
    left, right = _lines(first), _lines(second)
    keys = dict.fromkeys([*left, *right])
    return [
        Change(key, left.get(key, ABSENT), right.get(key, ABSENT))
        for key in keys
        if left.get(key, ABSENT) != right.get(key, ABSENT)
    ]


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
    found["plan: questions"] = _names(run.questions)
    found["plan: answered"] = _names(run.answered)
    for plan in run.variants:
        state = manifest.get("variants", {}).get(plan.variant_id, {})
        found[f"variant {plan.variant_id}: status"] = plain_text(state.get("status", "not run"), ABSENT)
        found[f"variant {plan.variant_id}: configuration"] = plain_text(state.get("config_identity"), ABSENT)[:12]
    for room in _TOLD:
        found |= _flat(room, manifest.get(room), depth=4)
    return found


def _flat(name: str, value: Any, depth: int) -> dict[str, str]:
    if isinstance(value, list) and len(value) == 1:
        return _flat(name, value[0], depth)
    if isinstance(value, Mapping) and depth:
        return {
            key: text for part, inner in value.items() for key, text in _flat(_at(name, part), inner, depth - 1).items()
        }
    return {name if ": " in name else f"{name}: {name}": plain_text(value, ABSENT)}


def _at(name: str, part: str) -> str:
    return f"{name}.{part}" if ": " in name else f"{name}: {part}"


def _names(ids: tuple[str, ...]) -> str:
    """Return a count, the first and the last name, and a digest, in which runs that differ in between differ."""
    from rag_lab._kit.digest import digest

    return f"{len(ids)}: {ids[0]} … {ids[-1]} ({digest(ids)[:8]})" if ids else "none"


def plain_text(value: Any, absent: str) -> str:
    """Write a JSON value for people: mappings and lists on one line, `absent` where there is none."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain_text(inner, absent)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(plain_text(inner, absent) for inner in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return absent if value is None else str(value)
