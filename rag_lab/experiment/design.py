"""Designs: from factors to variants. The first value of each factor is the baseline, which always comes first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.combinations import Changes, Factors, check_size, combinations, is_built_in
from rag_lab.experiment.experiment_error import ExperimentError
from rag_lab.experiment.variant_id import BASELINE, unique, variant_id, variant_label
from rag_lab.runs.run_once import SamePipeline


@dataclass(frozen=True, slots=True)
class Variant:
    """One pipeline of the experiment; `changes` are the dotted keys in which it differs from the baseline."""

    variant_id: str
    label: str
    changes: Mapping[str, Any]
    config: PipelineConfig


@dataclass(frozen=True, slots=True)
class Expansion:
    """The variants of a design, baseline first, one notice for each that repeats an earlier one, and these."""

    variants: tuple[Variant, ...]
    notices: tuple[str, ...] = ()
    same: tuple[SamePipeline, ...] = ()

    @property
    def baseline(self) -> Variant:
        """The variant with the first value of every factor."""
        return self.variants[0]


def expand(base: PipelineConfig, factors: Factors, design: Any) -> Expansion:
    """Expand `factors` (dotted key to values, first value the baseline) around `base`.

    Args:
        base: the pipeline that is changed.
        factors: dotted keys and their values.
        design: the name of a design other than `list`, or one as an object. Combinations that come out as a
            configuration already there are left out with a notice.

    Raises:
        ExperimentError: naming every unknown key and impossible value at once.
    """
    known = {key: values for key, values in factors.items() if key in dotted_keys()}
    problems = _unknown(factors)
    if problems and not is_built_in(design):  # which cannot be asked about other factors than there are
        raise ExperimentError("factors", problems)
    try:
        choices = combinations(base, known, design)
    except ExperimentError as error:
        raise ExperimentError("factors", [*problems, *error.problems]) from error
    problems += _unknown(key for choice in choices for key in choice) or _impossible(base, choices)
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
    check_size(len(variants))
    baseline = next(iter(variants.values())).flat()
    seen: dict[str, str] = {}
    expanded: list[Variant] = []
    same: list[SamePipeline] = []
    for name, config in variants.items():
        changes = _differences(config, baseline)
        if config.identity in seen:
            same.append(SamePipeline(name, changes, seen[config.identity]))
            continue
        seen[config.identity] = name
        expanded.append(Variant(name, name, changes, config))
    return Expansion(tuple(expanded), tuple(map(str, same)), tuple(same))


def _unknown(keys: Iterable[str]) -> list[str]:
    known = dotted_keys()
    return [unknown_name("parameter", key, known) for key in dict.fromkeys(keys) if key not in known]


def _differences(config: PipelineConfig, baseline: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.flat().items() if value != baseline[key]}


def _impossible(base: PipelineConfig, choices: Sequence[Changes]) -> list[str]:
    """Return a sentence for each value that spoils its combinations, and for each combination of good values."""
    together = [problem for choice in choices if (problem := _problem(base, choice))]
    if not together:
        return []
    keys = dict.fromkeys(key for choice in choices for key in choice)
    alone = [_problem(base, {key: choice[key]}) for key in keys for choice in choices if key in choice]
    values = [problem for problem in alone if problem and any(problem in other for other in together)]
    return values + [problem for problem in together if not any(value in problem for value in values)]


def _problem(base: PipelineConfig, changes: Mapping[str, Any]) -> str:
    try:
        base.override(changes)
    except ConfigError as error:
        return str(error)
    return ""


def _distinct(choices: Sequence[Changes], configs: Sequence[PipelineConfig]) -> Expansion:
    differences = [_differences(config, configs[0].flat()) for config in configs]
    varied = {key for changes in differences for key in changes}
    seen: dict[str, str] = {}
    variants: list[Variant] = []
    same: list[SamePipeline] = []
    for choice, changes, config in zip(choices, differences, configs, strict=True):
        if config.identity in seen:
            told = {key: value for key, value in choice.items() if key in varied}
            same.append(SamePipeline(variant_label(told or choice) or "{}", changes, seen[config.identity]))
            continue
        name = unique(variant_id(changes, among=varied), seen.values()) if changes else BASELINE
        seen[config.identity] = name
        variants.append(Variant(name, variant_label(changes) if changes else BASELINE, changes, config))
    return Expansion(tuple(variants), tuple(map(str, same)), tuple(same))
