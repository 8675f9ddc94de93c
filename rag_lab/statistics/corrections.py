"""Corrections of p-values for many comparisons."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the step-down adjusted p-values of Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure".

    They keep the chance of any false finding in the family at the level they are compared with, whatever the dependence
    between the tests. A None (nothing was tested) stays None and does not count in the family.
    """
    tested = sorted((p_value, index) for index, p_value in enumerate(p_values) if p_value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for rank, (p_value, index) in enumerate(tested):
        floor = max(floor, min(1.0, p_value * (len(tested) - rank)))
        adjusted[index] = floor
    return adjusted
