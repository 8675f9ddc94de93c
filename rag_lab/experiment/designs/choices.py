"""What a design takes and returns: factors, what is wanted of them, and what each variant changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab.experiment.experiment_error import ExperimentError

MAX_VARIANTS = 1000

Factors = Mapping[str, Sequence[Any]]
Changes = dict[str, Any]
Rules = Mapping[str, Mapping[str, Sequence[Any]]]  # factor -> the values of other keys beside which it varies


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an experiment says of its design beside the factors.

    n: variants that `random` draws, trials of `optuna`, the most runs of `fractional`; None where nothing is said.
    resolution: of `fractional`; None where nothing is said.
    seed: what is drawn at random is drawn with it.
    only_if: factors that vary only beside some values of other keys.
    """

    n: int | None = None
    resolution: int | None = None
    seed: int = 0
    only_if: Rules | None = None


def first_values(factors: Factors) -> Changes:
    """Return the baseline: the first value of each factor."""
    return {key: values[0] for key, values in factors.items()}


def check_size(n: int, instead: str = "") -> None:
    """Refuse more than `MAX_VARIANTS`, before they are made, which would take the memory of all.

    Raises:
        ExperimentError: which says what to do, and what else with `instead`.
    """
    if n > MAX_VARIANTS:
        told = f"The design has {n:,} variants, and at most {MAX_VARIANTS:,} are allowed; take out values{instead}."
        raise ExperimentError("factors", [told])
