"""The design `one_factor`: the baseline left in one factor at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.experiment.designs.choices import Changes, Factors, Wanted, check_size, first_values

_NOTHING = Wanted()


def one_factor(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Leave the baseline, which first values make, in one factor at a time."""
    check_size(1 + sum(len(values) - 1 for values in factors.values()))
    first = first_values(factors)
    return [first, *(first | {key: value} for key, values in factors.items() for value in values[1:])]
