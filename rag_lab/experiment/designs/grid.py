"""The design `grid`: all combinations of the values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from rag_lab.experiment.designs.choices import Changes, Factors, Wanted, check_size

_NOTHING = Wanted()


def grid(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Cross all values; first values are the baseline."""
    check_size(prod(len(values) for values in factors.values()), ", or use one_factor, fractional or random")
    return [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]
