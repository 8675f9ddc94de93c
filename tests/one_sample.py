"""The statistics of many samples at once, for one."""

from __future__ import annotations

from rag_lab.statistics.intervals import (
    Interval,
    PairedDifference,
    Sample,
    mean_intervals,
    paired_differences,
)


def mean_interval(values: Sample, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Return the interval of one sample."""
    return mean_intervals([values], confidence, seed)[0]


def paired_difference(a: Sample, b: Sample) -> PairedDifference:
    """Return the difference of one pair of samples."""
    return paired_differences([(a, b)])[0]
