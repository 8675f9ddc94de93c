"""How a race goes: its part of the experiment file."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, field_validator

from rag_lab._kit.config_file import Section

RACING = "racing"  # the name of the design
MIN_ROUND = 10  # questions of the first round; fewer drop at random


class RaceConfig(Section):
    """How many questions the rounds of the design `racing` have, and how surely a variant is worse that they drop."""

    rounds: list[Annotated[int, Field(ge=MIN_ROUND, le=10_000_000)]] = Field(
        default_factory=list,
        max_length=5,
        description="questions of each round, the earlier ones among them; by the number of questions where empty",
    )
    error: float = Field(
        0.05, gt=0, le=0.5, description="the chance that the best variant of all is ever dropped, over all rounds"
    )

    @field_validator("rounds")
    @classmethod
    def _rounds_grow(cls, value: list[int]) -> list[int]:
        if any(later <= earlier for earlier, later in pairwise(value)):
            raise ValueError("must grow from round to round, as in [40, 100]")
        return value
