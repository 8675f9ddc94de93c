"""Combinations that a sweep does not run, since a variant is the same pipeline, and how they are told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

MOST = 4  # combinations of one reason that are named


@dataclass(frozen=True, slots=True)
class SamePipeline:
    """A combination that is not run: it is the same pipeline as the variant `run_as`, by construction where `why` says.

    `changes` are the dotted keys in which its settings differ from the baseline's.
    """

    label: str
    changes: dict[str, Any]
    run_as: str
    why: str = ""

    def __str__(self) -> str:
        if not self.why:
            return f"{self.label} is the same pipeline as {self.run_as} and is run once."
        return f"{self.label} is the same pipeline as {self.run_as} by construction and is run once: {self.why}."


def run_once_told(same: Iterable[SamePipeline]) -> list[str]:
    """Return a sentence for each combination, and one for all that are the same pipelines for one reason."""
    by_reason: dict[str, list[SamePipeline]] = {}
    for one in same:
        by_reason.setdefault(one.why or str(one), []).append(one)
    return [str(found[0]) if len(found) == 1 else _together(found) for found in by_reason.values()]


def _together(found: list[SamePipeline]) -> str:
    named = [f"{one.label} as {one.run_as}" for one in found[:MOST]]
    more = [f"and {len(found) - MOST:,} more"] if len(found) > MOST else []
    return (
        f"{len(found):,} combinations are the same pipelines as others by construction and are run once, since "
        f"{found[0].why}: {'; '.join([*named, *more])}."
    )
