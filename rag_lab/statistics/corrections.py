"""Corrections of p-values for many comparisons, from the p-values alone.

The comparisons of a run are corrected by the step-down maximum of `randomization`, which knows how they hang together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from rag_lab.errors import ConfigError, unknown_name

Correction = Literal["max_t", "bh", "none"]


def corrected(alone: Sequence[float], adjusted: Sequence[float], method: Correction = "max_t") -> list[float | None]:
    """Return the p-values of a family by `method`.

    Args:
        alone: each for itself.
        adjusted: by the step-down maximum, see `randomization.step_down`.
        method: `max_t` (those `adjusted`), `bh` (Benjamini-Hochberg, weaker, for screening many) or `none`.

    Raises:
        ConfigError: if there is no such method.
    """
    check_correction(method)
    if method == "bh":
        return benjamini_hochberg(alone)
    return list(adjusted if method == "max_t" else alone)


def check_correction(method: str) -> None:
    """Refuse a method that there is not.

    Raises:
        ConfigError: naming those that there are.
    """
    if method not in get_args(Correction):
        raise ConfigError(unknown_name("correction", method, get_args(Correction)))


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


def hommel(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the adjusted p-values of Hommel (1988), "A Stagewise Rejective Multiple Test Procedure".

    It tests every subset of the family by Simes (1986), whose smallest size * p / rank is below the level too often
    only where tests depend on each other negatively; those of variants against one baseline, on the same questions,
    depend positively (Sarkar 1998). It finds all that Holm finds, and more where many p-values are small. A None stays
    None.
    """
    tested = sorted((p_value, index) for index, p_value in enumerate(p_values) if p_value is not None)
    p = [p_value for p_value, _ in tested]
    found = list(p)
    for size in range(len(p), 1, -1):
        least = len(p) - size  # where the largest of the family that make a subset of this size begin
        simes = min(size * one / rank for rank, one in enumerate(p[least + 1 :], 2))
        found = [max(so_far, min(simes, size * p[min(place, least)])) for place, so_far in enumerate(found)]
    adjusted: list[float | None] = [None] * len(p_values)
    for (_, index), value in zip(tested, found, strict=True):
        adjusted[index] = min(1.0, value)
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float | None]:
    """Return the step-up adjusted p-values of Benjamini and Hochberg (1995), "Controlling the False Discovery Rate".

    Of the findings below a level, at most that share is false on average: weaker than the control of any false finding,
    for screening many variants. It holds for independent tests and for positively dependent ones, as those against one
    baseline are.
    """
    adjusted: list[float | None] = [None] * len(p_values)
    ceiling = 1.0
    ordered = sorted((p_value, index) for index, p_value in enumerate(p_values))
    for rank, (p_value, index) in reversed(list(enumerate(ordered, 1))):
        ceiling = min(ceiling, p_value * len(p_values) / rank)
        adjusted[index] = ceiling
    return adjusted
