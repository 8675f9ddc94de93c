"""From factors to variants by a design, a built-in or a custom one. The first value of each factor is the baseline.

A design takes the base, as dotted keys with values, and the factors, and returns what each variant changes, a mapping
of dotted keys to values. The baseline comes first. Those that are built in take `Wanted`, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.registry import BuiltIn, Kind, from_object
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
from rag_lab.runs.omissions import SamePipeline, same_pipeline_sentences

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
    """Expand `factors` (dotted key to values, first value the baseline) around `base` by a design's name or object.

    Combinations that come out as a configuration already there are left out with a notice.

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
