"""From factors to variants by a design. The first value of each factor is the baseline, which always comes first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.designs.factors import (
    BASELINE,
    NOTHING_WANTED,
    Changes,
    ExperimentError,
    Factors,
    Wanted,
    check_size,
    rule_problems,
    settled,
    unique,
    variant_id,
    variant_label,
    varying_where,
)
from rag_lab.experiment.designs.fractional import fraction_notices
from rag_lab.experiment.designs.registry import combinations, is_built_in
from rag_lab.runs.omissions import SamePipeline, same_pipeline_sentences


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


def expand(base: PipelineConfig, factors: Factors, design: Any, wanted: Wanted = NOTHING_WANTED) -> Expansion:
    """Expand `factors` (dotted key to values, first value the baseline) around `base`.

    Args:
        base: the pipeline that is changed.
        factors: dotted keys and their values.
        design: the name of a design other than `list`, or one as an object. Combinations that come out as a
            configuration already there are left out with a notice.
        wanted: what the experiment says of the design beside its factors, the rules between these among it.

    Raises:
        ExperimentError: naming every unknown key and impossible value at once.
    """
    known = {key: values for key, values in factors.items() if key in dotted_keys()}
    problems = [*_unknown(factors), *rule_problems(wanted.only_if or {}, factors, base.flat())]
    if problems and (wanted.only_if or not is_built_in(design)):  # neither knows other factors than there are
        raise ExperimentError("factors", problems)
    try:
        drawn = combinations(base, known, design, wanted)
    except ExperimentError as error:
        raise ExperimentError("factors", [*problems, *error.problems]) from error
    choices = [settled(base.flat(), choice, known, wanted.only_if) for choice in drawn]
    problems += _unknown(key for choice in choices for key in choice) or _impossible(base, choices)
    if problems:
        raise ExperimentError("factors", problems)
    found = _distinct(drawn, choices, [base.override(choice) for choice in choices], wanted)
    notices = fraction_notices(known, drawn, choices) if design == "fractional" else []
    return replace(found, notices=(*notices, *found.notices))


def expand_list(variants: Mapping[str, PipelineConfig]) -> Expansion:
    """Return the pipelines of a list, each under its own name; the first is the baseline.

    One that is the same as an earlier one is left out with a notice.
    """
    if not variants:
        raise ExperimentError("variants", ["variants: none given; name at least one pipeline."])
    check_size(len(variants))
    baseline = next(iter(variants.values()))
    seen: dict[str, str] = {}
    expanded: list[Variant] = []
    same: list[SamePipeline] = []
    for name, config in variants.items():
        changes = differences(config, baseline)
        if config.identity in seen:
            same.append(SamePipeline(name, changes, seen[config.identity]))
            continue
        seen[config.identity] = name
        expanded.append(Variant(name, name, changes, config))
    return Expansion(tuple(expanded), tuple(map(str, same)), tuple(same))


def differences(config: PipelineConfig, baseline: PipelineConfig) -> Changes:
    """Return the dotted keys in which a pipeline differs from the baseline, with its values."""
    known = baseline.flat()
    return {key: value for key, value in config.flat().items() if value != known[key]}


def _unknown(keys: Iterable[str]) -> list[str]:
    known = dotted_keys()
    return [unknown_name("parameter", key, known) for key in dict.fromkeys(keys) if key not in known]


def _impossible(base: PipelineConfig, choices: Sequence[Changes]) -> list[str]:
    """Return a sentence for each value that spoils its combinations, and for each combination of good values."""

    def problem(changes: Changes) -> str:
        try:
            base.override(changes)
        except ConfigError as error:
            return str(error)
        return ""

    together = list(filter(None, map(problem, choices)))
    if not together:
        return []
    keys = dict.fromkeys(key for choice in choices for key in choice)
    alone = [problem({key: choice[key]}) for key in keys for choice in choices if key in choice]
    values = [one for one in alone if one and any(one in other for other in together)]
    return values + [one for one in together if not any(value in one for value in values)]


def _distinct(
    drawn: Sequence[Changes], choices: Sequence[Changes], configs: Sequence[PipelineConfig], wanted: Wanted
) -> Expansion:
    """Return each pipeline once; of `drawn`, what was drawn before the rules between factors, the others are told."""
    baseline = configs[0].flat()
    changed = [differences(config, configs[0]) for config in configs]
    varied = {key for changes in changed for key in changes}
    seen: dict[str, str] = {}
    variants: list[Variant] = []
    same: list[SamePipeline] = []
    for given, choice, changes, config in zip(drawn, choices, changed, configs, strict=True):
        if config.identity in seen:
            asked = changes if given == choice else {key: one for key, one in given.items() if one != baseline[key]}
            told = {key: value for key, value in given.items() if key in varied | set(asked)}
            why = varying_where(given, choice, wanted.only_if or {})
            same.append(SamePipeline(variant_label(told or given) or "{}", asked, seen[config.identity], why))
            continue
        name = unique(variant_id(changes, among=varied), seen.values()) if changes else BASELINE
        seen[config.identity] = name
        variants.append(Variant(name, variant_label(changes) if changes else BASELINE, changes, config))
    notices = (*(str(one) for one in same if not one.why), *same_pipeline_sentences(one for one in same if one.why))
    return Expansion(tuple(variants), notices, tuple(same))
