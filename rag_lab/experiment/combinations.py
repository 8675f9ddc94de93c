"""Which combinations of the factors' values are run: a design that is built in, or one of somebody's own.

A design takes the base, as dotted keys with values, and the factors, and returns what each variant changes, a mapping
of dotted keys to values. The first is the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import product
from math import prod
from typing import Any

from rag_lab._kit.own_code import OwnCode, OwnCodeError
from rag_lab._kit.registry import BuiltIn, Kind, own
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.experiment.experiment_error import ExperimentError

MAX_VARIANTS = 1000

Factors = Mapping[str, Sequence[Any]]
Changes = dict[str, Any]

DESIGNS = Kind(
    "design",
    "rag_lab.designs",
    {
        "grid": BuiltIn("rag_lab.experiment.combinations:grid", "all combinations of the values"),
        "one_factor": BuiltIn(
            "rag_lab.experiment.combinations:one_factor", "the baseline left in one factor at a time"
        ),
        "racing": BuiltIn(
            "rag_lab.experiment.combinations:grid",
            "those of a grid, or of a list: rounds of questions drop most, the winner is proven on others",
        ),
        "list": BuiltIn("rag_lab.experiment.design:expand_list", "the pipelines under `variants`"),
    },
)


def grid(base: Mapping[str, Any], factors: Factors) -> list[Changes]:
    """Cross all values; first values are the baseline."""
    check_size(prod(len(values) for values in factors.values()), " or use one_factor")
    return [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]


def one_factor(base: Mapping[str, Any], factors: Factors) -> list[Changes]:
    """Leave the baseline, which first values make, in one factor at a time."""
    check_size(1 + sum(len(values) - 1 for values in factors.values()))
    first = {key: values[0] for key, values in factors.items()}
    return [first, *(first | {key: value} for key, values in factors.items() for value in values[1:])]


def check_size(n: int, instead: str = "") -> None:
    """Refuse more than `MAX_VARIANTS`, before they are made, which would take the memory of all.

    Raises:
        ExperimentError: which says what to do, and what else with `instead`.
    """
    if n > MAX_VARIANTS:
        told = f"The design has {n:,} variants, and at most {MAX_VARIANTS:,} are allowed; take out values{instead}."
        raise ExperimentError("factors", [told])


def is_built_in(design: Any) -> bool:
    """Tell whether a design is one of the workbench's, by its name."""
    return isinstance(design, str) and design in DESIGNS.built_in


def combinations(base: PipelineConfig, factors: Factors, design: Any) -> list[Changes]:
    """Return what each variant changes, by a design's name or by a design that is given as an object.

    Raises:
        ExperimentError: if they are too many, or somebody's design cannot be found or returned no changes.
    """
    try:
        module = DESIGNS.find(design) if isinstance(design, str) else own(design, DESIGNS)
        if is_built_in(design):
            return list(module.made(base.flat(), factors))
        code = OwnCode(module, f"design {module.name!r}")
        theirs = deepcopy({key: list(values) for key, values in factors.items()})
        changes: list[Changes] = code.call(base.flat(), theirs, accept=lambda given: _accepted(given, code.what))
    except ExperimentError:
        raise
    except ConfigError as error:
        raise ExperimentError("design", [f"design: {error}"]) from error
    except OwnCodeError as error:
        raise ExperimentError("design", [f"design: {error}."]) from error
    return changes


def _accepted(given: Any, what: str) -> list[Changes]:
    if not isinstance(given, list | tuple):
        raise OwnCodeError(f"the {what} returned {type(given).__name__} where a list of changes is due")
    if not given:
        raise OwnCodeError(f"the {what} returned no variants; the first is the baseline, which may be {{}}")
    check_size(len(given))
    for number, changes in enumerate(given, start=1):
        if not isinstance(changes, Mapping):
            raise OwnCodeError(
                f"the {what} returned {changes!r:.80} as variant {number}, where dotted keys with values are due"
            )
    return [{str(key): value for key, value in changes.items()} for changes in given]
