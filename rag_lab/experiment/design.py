"""Designs: from factors to variants. The first value of each factor is the baseline, which always comes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Literal

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.experiment_error import ExperimentError
from rag_lab.experiment.variant_id import BASELINE, unique, variant_id, variant_label

Design = Literal["grid", "one_factor", "list"]
MAX_VARIANTS = 1000


@dataclass(frozen=True, slots=True)
class Variant:
    """One pipeline of the experiment; `changes` are the dotted keys in which it differs from the baseline."""

    variant_id: str
    label: str
    changes: Mapping[str, Any]
    config: PipelineConfig


@dataclass(frozen=True, slots=True)
class Expansion:
    """The variants of a design, baseline first, and one notice for each combination that repeats an earlier one."""

    variants: tuple[Variant, ...]
    notices: tuple[str, ...] = ()

    @property
    def baseline(self) -> Variant:
        """The variant with the first value of every factor."""
        return self.variants[0]


def expand(base: PipelineConfig, factors: Mapping[str, Sequence[Any]], design: Design) -> Expansion:
    """Expand `factors` (dotted key to values, first value the baseline) around `base`.

    `grid` crosses all values; any other design leaves the baseline in one factor at a time. Combinations that come out
    as a configuration already there are left out with a notice.

    Raises:
        ExperimentError: naming every unknown key and impossible value at once.
    """
    problems = [unknown_name("parameter", key, dotted_keys()) for key in factors if key not in dotted_keys()]
    known = {key: values for key, values in factors.items() if key in dotted_keys()}
    sizes = [len(values) for values in known.values()]
    n = prod(sizes) if design == "grid" else 1 + sum(sizes) - len(sizes)
    if n > MAX_VARIANTS:  # told before they are made, which would take the memory of all
        problems.append(_too_many(n, " or use one_factor" if design == "grid" else ""))
        raise ExperimentError("factors", problems)
    choices = list(_grid(known) if design == "grid" else _one_factor(known))
    problems += _impossible(base, known, choices)
    if problems:
        raise ExperimentError("factors", problems)
    return _distinct(choices, [base.override(choice) for choice in choices])


def expand_list(variants: Mapping[str, PipelineConfig]) -> Expansion:
    """Return the pipelines of a list, each under its own name; the first is the baseline.

    One that is the same as an earlier one is left out with a notice.

    Raises:
        ExperimentError: if the list is empty or too long.
    """
    if not variants:
        raise ExperimentError("variants", ["variants: none given; name at least one pipeline."])
    if len(variants) > MAX_VARIANTS:
        raise ExperimentError("variants", [_too_many(len(variants))])
    baseline = next(iter(variants.values())).flat()
    seen: dict[str, str] = {}
    expanded: list[Variant] = []
    notices: list[str] = []
    for name, config in variants.items():
        if config.identity in seen:
            notices.append(_same_pipeline(name, seen[config.identity]))
            continue
        seen[config.identity] = name
        expanded.append(Variant(name, name, _differences(config, baseline), config))
    return Expansion(tuple(expanded), tuple(notices))


def _too_many(n: int, instead: str = "") -> str:
    return f"The design has {n:,} variants, and at most {MAX_VARIANTS:,} are allowed; take out values{instead}."


def _same_pipeline(asked: str, ran: str) -> str:
    return f"{asked} is the same pipeline as {ran} and is run once."


def _differences(config: PipelineConfig, baseline: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.flat().items() if value != baseline[key]}


def _impossible(
    base: PipelineConfig, factors: Mapping[str, Sequence[Any]], choices: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return a sentence for each value that spoils its combinations, and for each combination of good values."""
    together = [problem for choice in choices if (problem := _problem(base, choice))]
    alone = [_problem(base, {key: value}) for key, values in factors.items() for value in values]
    values = [problem for problem in alone if problem and any(problem in other for other in together)]
    return values + [problem for problem in together if not any(value in problem for value in values)]


def _problem(base: PipelineConfig, changes: Mapping[str, Any]) -> str:
    try:
        base.override(changes)
    except ConfigError as error:
        return str(error)
    return ""


def _grid(factors: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    for values in product(*factors.values()):
        yield dict(zip(factors, values, strict=True))


def _one_factor(factors: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    baseline = {key: values[0] for key, values in factors.items()}
    yield baseline
    for key, values in factors.items():
        for value in values[1:]:
            yield baseline | {key: value}


def _distinct(choices: Sequence[Mapping[str, Any]], configs: Sequence[PipelineConfig]) -> Expansion:
    baseline = configs[0].flat()
    seen: dict[str, str] = {}
    variants: list[Variant] = []
    notices: list[str] = []
    for choice, config in zip(choices, configs, strict=True):
        changes = _differences(config, baseline)
        if config.identity in seen:
            notices.append(_same_pipeline(variant_label(choice), seen[config.identity]))
            continue
        name = unique(variant_id(changes, among=tuple(choice)), seen.values()) if changes else BASELINE
        seen[config.identity] = name
        variants.append(Variant(name, variant_label(changes) if changes else BASELINE, changes, config))
    return Expansion(tuple(variants), tuple(notices))
