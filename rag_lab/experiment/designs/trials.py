"""The design `optuna` as it is planned: nobody knows its trials before, so combinations drawn at random stand in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from rag_lab.experiment.designs.choices import Changes, Factors, Wanted
from rag_lab.experiment.designs.one_factor import one_factor
from rag_lab.experiment.designs.random_draw import random_draw
from rag_lab.experiment.experiment_error import ExperimentError

OPTUNA = "optuna"  # the name of the design
SAMPLERS = ("tpe", "nsga2")
_NOTHING = Wanted()


def stand_ins(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Return as many combinations as there will be trials, each value among them, so that each is checked.

    Raises:
        ExperimentError: if nobody says how many.
    """
    if wanted.n is None:
        raise ExperimentError("n", ["n: missing; say how many trials the design optuna makes, the baseline included."])
    n = min(wanted.n, prod(len(values) for values in factors.values()))
    alone, drawn = one_factor(base, factors), random_draw(base, factors, replace(wanted, n=n))
    others = [one for one in drawn if one not in alone]
    return [*alone, *others[: max(0, n - len(alone))]]
