"""What the values of a metric mean: the range that they can take, and which end of it is the better."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

_ROUNDING = 1e-6  # a cosine of 1.0000001 is within its range


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of a metric, with None where it has no bound; by default a share of which more is better."""

    low: float | None = 0.0
    high: float | None = 1.0
    higher_is_better: bool = True

    @property
    def sign(self) -> int:
        """What a difference is multiplied with, so that more is better."""
        return 1 if self.higher_is_better else -1

    @property
    def worst(self) -> float | None:
        """The worst value that the metric can take."""
        return self.low if self.higher_is_better else self.high

    @property
    def best(self) -> float | None:
        """The best value that the metric can take."""
        return self.high if self.higher_is_better else self.low

    @property
    def width(self) -> float | None:
        """The largest possible difference of two values; None where the range is open."""
        return None if self.low is None or self.high is None else self.high - self.low

    def named(self, metric: str) -> str:
        """Return the name of a metric, and that lower is better where it is."""
        return metric if self.higher_is_better else f"{metric} (lower is better)"

    def within(self, value: float | None) -> float | None:
        """Return a value, or the end of the range that it lies beyond."""
        if value is None:
            return None
        above = value if self.low is None else max(value, self.low)
        return above if self.high is None else min(above, self.high)


SHARE, UNKNOWN = Scale(), Scale(None, None)


def scales_of(scores: pd.DataFrame, known: Mapping[Any, Scale] | None = None) -> dict[Any, Scale]:
    """Return the scale of each metric of the table.

    A known one loses a bound that a score lies beyond. A metric of unknown range is a share where all its scores could
    be one, and otherwise has no range.
    """
    value = pd.to_numeric(scores["value"]).astype(float)
    value = value.where((scores["status"] == "scored") & np.isfinite(value))
    found = {}
    for metric, values in value.groupby(scores["metric"], sort=False):
        scale = (known or {}).get(metric, UNKNOWN)
        is_open = scale.low is None and scale.high is None
        share = replace(SHARE, higher_is_better=scale.higher_is_better)
        ends = share if is_open else scale
        low = None if ends.low is None or values.min() < ends.low - _ROUNDING else ends.low
        high = None if ends.high is None or values.max() > ends.high + _ROUNDING else ends.high
        around = replace(ends, low=low, high=high)
        found[metric] = scale if is_open and around != share else around
    return found
