"""What a stage or a metric has to do, counted once for all variants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["call", "pair", "question", "score", "chunk", "file", "variant"]


@dataclass(frozen=True, slots=True)
class Work:
    """What one stage or metric has to do with one model.

    `n` counts units: calls of a chat model, pairs that a reranker scores, questions, scores, chunks to embed, files
    that a model reads or splits, notebooks to run. `at_most`: a part of it depends on results that are not there yet.
    `remembered` counts results that the memory holds. Tokens are at most: prompts as long, and replies as long, as they
    may become.
    """

    purpose: str
    model: str
    unit: Unit
    n: int = 0
    at_most: bool = False
    remembered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: Work) -> Work:
        """Return both together; they have the same purpose, model and unit."""
        return Work(
            self.purpose,
            self.model,
            self.unit,
            self.n + other.n,
            self.at_most or other.at_most,
            self.remembered + other.remembered,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
        )


class Tally:
    """The work of a whole plan: each result is counted once, whichever variants need it."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._work: dict[tuple[str, str, Unit], Work] = {}

    def is_new(self, key: str) -> bool:
        """Tell whether `key` is met for the first time, and note it."""
        new = key not in self._seen
        self._seen.add(key)
        return new

    def add(self, work: Work) -> None:
        """Put `work` to what is there of its purpose, model and unit."""
        place = (work.purpose, work.model, work.unit)
        self._work[place] = self._work[place] + work if place in self._work else work

    @property
    def work(self) -> list[Work]:
        """All work, in the order in which it was first met."""
        return list(self._work.values())
