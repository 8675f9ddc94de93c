"""The tree of a plan, grown while its work is foreseen: variants part at the first stage in which they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_lab.experiment.forecast.foreseen_work import Work
from rag_lab.experiment.variant_id import variant_label
from rag_lab.runs.plan_tree import Branch

Step = tuple[str, str]  # a stage's name and the digest of what it does


@dataclass(frozen=True, slots=True)
class _Path:
    variant: str
    settings: Mapping[str, Any]  # dotted keys that any variant changes
    steps: Sequence[Step]
    work: Mapping[str, Sequence[Work]]  # by stage; what this variant is the first to need


@dataclass
class GrownTree:
    """Takes the variants in the order in which their work is counted."""

    _paths: dict[str, _Path] = field(default_factory=dict)

    def add(self, variant: str, settings: Mapping[str, Any], steps: Sequence[Step], new: Sequence[Work]) -> None:
        """Take a variant with its stages in order and the work that no variant before it needs.

        What belongs to none of its stages, as scoring, is put behind the last.
        """
        names = {name for name, _ in steps}
        work: dict[str, list[Work]] = {}
        for one in new:
            work.setdefault(one.purpose if one.purpose in names else "", []).append(one)
        self._paths.setdefault(variant, _Path(variant, settings, [*steps, ("", variant)], work))

    def tree(self) -> Branch | None:
        """Return the tree; None where there is no variant."""
        paths = list(self._paths.values())
        return _branch(paths, 0, {}, "") if paths else None


def _branch(paths: Sequence[_Path], depth: int, known: Mapping[str, Any], stage: str) -> Branch:
    """Return the branch of variants that have done the same before place `depth` of their stages."""
    shared = {key: value for key, value in paths[0].settings.items() if _is_same(paths, key)}
    label = variant_label({key: value for key, value in shared.items() if key not in known})
    work: list[Work] = []
    while len({_at(path, depth) for path in paths}) == 1 and depth < max(len(path.steps) for path in paths):
        work += [one for path in paths for one in path.work.get(path.steps[depth][0], ())]
        depth += 1
    parts: dict[Step | None, list[_Path]] = {}
    for path in paths:
        parts.setdefault(_at(path, depth), []).append(path)
    branches = (
        ()
        if len(paths) == 1
        else tuple(_branch(part, depth, shared, step[0] if step else "") for step, part in parts.items())
    )
    name = label if branches else paths[0].variant
    at_most = any(one.at_most for one in work)
    return Branch(name, stage, len(paths), _units(work), at_most, branches)


def _at(path: _Path, depth: int) -> Step | None:
    return path.steps[depth] if depth < len(path.steps) else None


def _is_same(paths: Sequence[_Path], key: str) -> bool:
    return all(path.settings.get(key) == paths[0].settings[key] for path in paths)


def _units(work: Sequence[Work]) -> tuple[tuple[str, int], ...]:
    counts: Counter[str] = Counter()
    for one in work:
        counts[one.unit] += one.n
    return tuple((unit, n) for unit, n in counts.items() if n)
