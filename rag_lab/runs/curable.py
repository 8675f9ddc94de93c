"""What failed in a sweep for a reason that another attempt may cure: an outage, a rate limit, a time-out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_lab._kit.wording import counted


@dataclass(frozen=True, slots=True)
class Curable:
    """How many questions of a variant failed or fell back for such a reason, and how many scores failed."""

    questions: int = 0
    scores: int = 0

    @classmethod
    def of(cls, record: Mapping[str, Any] | None) -> Curable:
        """Read a variant's record, or its part of a manifest; one that does not count them has none."""
        return cls(**(record or {}).get("curable", {}))

    def __add__(self, other: Curable) -> Curable:
        return Curable(self.questions + other.questions, self.scores + other.scores)

    @property
    def total(self) -> int:
        """Questions and scores together."""
        return self.questions + self.scores

    def __str__(self) -> str:
        parts = ((self.questions, "question"), (self.scores, "score"))
        return " and ".join(counted(n, noun) for n, noun in parts if n)


def tried_again(found: Mapping[str, Curable]) -> str:
    """Return one sentence on what a start of the sweep tries again, by variant; '' where that is nothing."""
    told = _by_variant(found)
    return f"Tried again, since another attempt may cure what failed: {told}." if told else ""


def left_to_cure(found: Mapping[str, Curable]) -> str:
    """Return one sentence on what a sweep has left that another start may cure; '' where that is nothing."""
    told = _by_variant(found)
    return f"Another attempt may cure {told}: start the same command again and it tries them again." if told else ""


def _by_variant(found: Mapping[str, Curable]) -> str:
    return ", ".join(f"{curable} of {name}" for name, curable in found.items() if curable.total)
