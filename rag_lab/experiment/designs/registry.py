"""Which combinations of the factors' values are run: a design that is built in, or a custom one.

A design takes the base, as dotted keys with values, and the factors, and returns what each variant changes, a mapping
of dotted keys to values. The first is the baseline. Those that are built in take `Wanted`, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.registry import BuiltIn, Kind, from_object
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.experiment.designs.factors import NOTHING_WANTED, Changes, ExperimentError, Factors, Wanted, check_size

_COMBINATIONS = "rag_lab.experiment.designs.combinations"

DESIGNS = Kind(
    "design",
    "rag_lab.designs",
    {
        "grid": BuiltIn(f"{_COMBINATIONS}:grid", "all combinations of the values"),
        "one_factor": BuiltIn(f"{_COMBINATIONS}:one_factor", "the baseline left in one factor at a time"),
        "fractional": BuiltIn(
            "rag_lab.experiment.designs.fractional:fractional",
            "a balanced part of the grid of factors with two values, of a `resolution` or of at most `n` runs",
        ),
        "random": BuiltIn(f"{_COMBINATIONS}:random_draw", "`n` combinations drawn from the grid"),
        "racing": BuiltIn(
            f"{_COMBINATIONS}:grid",
            "those of a grid, or of a list: rounds of questions drop most, the winner is proven on others",
        ),
        "staged": BuiltIn(
            f"{_COMBINATIONS}:staged",
            "stage by stage, the best of each is carried on; the last is proven on questions that chose nothing",
        ),
        "optuna": BuiltIn(
            f"{_COMBINATIONS}:trial_placeholders",
            "`n` trials that a sampler chooses by earlier ones; the best is proven on questions that chose nothing",
            needs="optuna",
            install="rag_lab[optuna]",
        ),
        "list": BuiltIn("rag_lab.experiment.design:expand_list", "the pipelines under `variants`"),
    },
    call="__call__(self, base, factors)",
)


def is_built_in(design: Any) -> bool:
    """Tell whether a design is one of the workbench's, by its name."""
    return isinstance(design, str) and design in DESIGNS.built_in


def combinations(base: PipelineConfig, factors: Factors, design: Any, wanted: Wanted = NOTHING_WANTED) -> list[Changes]:
    """Return what each variant changes, by a design's name or by a design that is given as an object."""
    try:
        module = DESIGNS.find(design) if isinstance(design, str) else from_object(design, DESIGNS)
        if is_built_in(design):
            return list(module.value(base.flat(), factors, wanted))
        code = CustomCode(module, f"design {module.name!r}")
        theirs = deepcopy({key: list(values) for key, values in factors.items()})
        changes: list[Changes] = code.call(base.flat(), theirs, accept=lambda returned: _accepted(returned, code.what))
    except ExperimentError:
        raise
    except ConfigError as error:
        raise ExperimentError("design", [f"design: {error}"]) from error
    except CustomCodeError as error:
        raise ExperimentError("design", [f"design: {error}."]) from error
    return changes


def _accepted(returned: Any, what: str) -> list[Changes]:
    if not isinstance(returned, list | tuple):
        raise CustomCodeError(f"the {what} returned {type(returned).__name__} where a list of changes is due")
    if not returned:
        raise CustomCodeError(f"the {what} returned no variants; the first is the baseline, which may be {{}}")
    check_size(len(returned))
    for number, changes in enumerate(returned, start=1):
        if not isinstance(changes, Mapping):
            raise CustomCodeError(
                f"the {what} returned {changes!r:.80} as variant {number}, where dotted keys with values are due"
            )
    return [{str(key): value for key, value in changes.items()} for changes in returned]
