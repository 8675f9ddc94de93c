"""How a race goes: its part of the experiment file."""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import Annotated

from pydantic import Field, field_validator

from rag_lab._kit.config_section import Section

RACING = "racing"  # the name of the design
MIN_ROUND = 10  # questions of the first round; fewer drop at random


class RaceConfig(Section):
    """How many questions the rounds of the design `racing` have, and how many variants each round keeps."""

    rounds: list[Annotated[int, Field(ge=MIN_ROUND, le=10_000_000)]] = Field(
        default_factory=list,
        max_length=5,
        description="questions of each round, the earlier ones among them; by the number of questions where empty",
    )
    keep: float = Field(
        0.5, gt=0, lt=1, description="share of the variants beside the baseline that a round keeps; the last keeps one"
    )

    @field_validator("rounds")
    @classmethod
    def _rounds_grow(cls, value: list[int]) -> list[int]:
        if any(later <= earlier for earlier, later in pairwise(value)):
            raise ValueError("must grow from round to round, as in [40, 100]")
        return value

    def kept(self, n_variants: int, n_rounds: int) -> list[int]:
        """Return how many of `n_variants` beside the baseline are left after each round; the last leaves one.

        Rounds after one is left are not run.
        """
        left: list[int] = []
        while n_variants > 1 and len(left) < n_rounds:
            is_last = len(left) == n_rounds - 1
            n_variants = 1 if is_last else min(n_variants - 1, max(1, ceil(round(n_variants * self.keep, 9))))
            left.append(n_variants)
        return left
