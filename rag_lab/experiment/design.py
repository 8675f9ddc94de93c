"""From factors to variants by a design, a built-in or a custom one; their names, and the rules between factors.

A design takes the base, as dotted keys with values, and the factors, and returns what each variant changes, a mapping
of dotted keys to values. The baseline comes first: the first value of each factor. Built-in designs take `Wanted`, too.

A rule lets a factor vary only where another key has certain values, elsewhere it keeps its baseline value:
`only_if: {retrieval.hyde_k: {query.hyde: [always, classified]}}`. Without HyDE there is one variant, whatever `hyde_k`
would be.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.digest import short_name
from rag_lab._kit.registry import from_object, kinds_of
from rag_lab._kit.wording import listing
from rag_lab.config import PipelineConfig, dotted_keys
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.runs.omissions import SamePipeline, same_pipeline_sentences

MAX_VARIANTS = 1000
BASELINE = "baseline"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")  # in names of folders

Factors = Mapping[str, Sequence[Any]]
Changes = dict[str, Any]
Rules = Mapping[str, Mapping[str, Sequence[Any]]]  # factor -> the values of other keys beside which it varies


class ExperimentError(ConfigError):
    """What is wrong with an experiment; `problems` holds one sentence each, and `str()` lists them all."""

    def __init__(self, where: str, problems: Iterable[str]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        text = f"{where}: {self.problems[0]}" if self.problems else where
        if len(self.problems) != 1:
            lines = "".join(f"\n  - {problem}" for problem in self.problems)
            text = f"{where} has {len(self.problems)} problems, and nothing was run:{lines}"
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an experiment says of its design beside the factors: keys of `ExperimentConfig`, which describes them."""

    n: int | None = None
    resolution: int | None = None
    seed: int = 0
    only_if: Rules | None = None


NOTHING_WANTED = Wanted()


def first_values(factors: Factors) -> Changes:
    """Return the baseline: the first value of each factor."""
    return {key: values[0] for key, values in factors.items()}


def check_size(n: int, instead: str = "") -> None:
    """Refuse more than `MAX_VARIANTS`, before they are made, which would take the memory of all."""
    if n > MAX_VARIANTS:
        message = f"The design has {n:,} variants, and at most {MAX_VARIANTS:,} are allowed; take out values{instead}."
        raise ExperimentError("factors", [message])


(DESIGNS,) = kinds_of(Path(__file__).with_name("modules.yaml"), "rag_lab.experiment")


def _combinations(base: PipelineConfig, factors: Factors, design: Any, wanted: Wanted) -> list[Changes]:
    """Return what each variant changes, by a design's name or by a design that is given as an object."""
    try:
        module = DESIGNS.find(design) if isinstance(design, str) else from_object(design, DESIGNS)
        if isinstance(design, str) and design in DESIGNS.built_in:
            return list(module.value(base.flat(), factors, wanted))
        code = CustomCode(module, f"design {module.name!r}")
        inputs = deepcopy({key: list(values) for key, values in factors.items()})
        return list(code.call(base.flat(), inputs, accept=lambda returned: _accepted(returned, code.what)))
    except ExperimentError:
        raise
    except (ConfigError, CustomCodeError) as error:
        end = "." if isinstance(error, CustomCodeError) else ""
        raise ExperimentError("design", [f"design: {error}{end}"]) from error


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

    Combinations that come out as a configuration already there are left out with a notice. An ExperimentError names
    every unknown key and impossible value at once.
    """
    keys = dotted_keys()
    known = {key: values for key, values in factors.items() if key in keys}
    problems = [unknown_name("parameter", key, keys) for key in factors if key not in keys]
    problems += _rule_problems(wanted.only_if or {}, factors, base.flat())
    is_built_in = isinstance(design, str) and design in DESIGNS.built_in
    if problems and (wanted.only_if or not is_built_in):  # neither knows other factors than there are
        raise ExperimentError("factors", problems)
    try:
        drawn = _combinations(base, known, design, wanted)
    except ExperimentError as error:
        raise ExperimentError("factors", [*problems, *error.problems]) from error
    choices = [settled(base.flat(), choice, known, wanted.only_if) for choice in drawn]
    changed = dict.fromkeys(key for choice in choices for key in choice)
    unknown = [unknown_name("parameter", key, keys) for key in changed if key not in keys]
    problems += unknown or _impossible(base, choices)
    if problems:
        raise ExperimentError("factors", problems)
    found = _distinct(drawn, choices, [base.override(choice) for choice in choices], wanted.only_if or {})
    notices = _fraction_notices(known, drawn, choices) if design == "fractional" else []
    return replace(found, notices=(*notices, *found.notices))


def expand_list(variants: Mapping[str, PipelineConfig]) -> Expansion:
    """Return the pipelines of a list, each under its own name; the first is the baseline.

    One that is the same as an earlier one is left out with a notice.
    """
    if not variants:
        raise ExperimentError("variants", ["variants: none given; name at least one pipeline."])
    check_size(len(variants))
    baseline, expanded, same = next(iter(variants.values())), dict[str, Variant](), list[SamePipeline]()
    for name, config in variants.items():
        one = Variant(name, name, config.differing(baseline), config)
        first = expanded.setdefault(config.identity, one)
        if first is not one:
            same.append(SamePipeline(name, dict(one.changes), first.variant_id))
    return Expansion(tuple(expanded.values()), tuple(map(str, same)), tuple(same))


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
    drawn: Sequence[Changes], choices: Sequence[Changes], configs: Sequence[PipelineConfig], rules: Rules
) -> Expansion:
    """Return each pipeline once; of `drawn`, what was drawn before the rules between factors, the others are named."""
    baseline, changed = configs[0].flat(), [config.differing(configs[0]) for config in configs]
    varied = {key for changes in changed for key in changes}
    seen, variants, same = dict[str, str](), list[Variant](), list[SamePipeline]()
    for before, choice, changes, config in zip(drawn, choices, changed, configs, strict=True):
        if config.identity in seen:
            asked = changes if before == choice else {key: one for key, one in before.items() if one != baseline[key]}
            shown = {key: value for key, value in before.items() if key in varied | set(asked)}
            why = []
            for key in (key for key in rules if key in before and before[key] != choice[key]):
                where = [f"{other} is {' or '.join(map(str, values))}" for other, values in rules[key].items()]
                why.append(f"only_if lets {key} vary only where {' and '.join(where)}")
            label = variant_label(shown or before) or "{}"
            same.append(SamePipeline(label, asked, seen[config.identity], " and ".join(why)))
            continue
        name, number = variant_id(changes, among=varied) if changes else BASELINE, 2
        taken = {other.casefold() for other in seen.values()} | {BASELINE}  # as file systems fold case
        while changes and name.casefold() in taken:
            name, number = f"{name}-{number}", number + 1
        seen[config.identity] = name
        variants.append(Variant(name, variant_label(changes) if changes else BASELINE, changes, config))
    notices = (*(str(one) for one in same if not one.why), *same_pipeline_sentences(one for one in same if one.why))
    return Expansion(tuple(variants), notices, tuple(same))


def _fraction_notices(factors: Factors, drawn: Sequence[Changes], choices: Sequence[Changes]) -> list[str]:
    """Return the notices of a fraction as it was drawn, and as rules between factors have left it."""
    from rag_lab.comparison.tables.effects import fraction_sentence  # pandas; naming a design loads none

    names = [key for key, values in factors.items() if len(values) > 1]
    if not names:
        return []
    notices = [fraction_sentence(names, [[repr(run[name]) for name in names] for run in drawn])]
    if moved := [choice for choice in choices if choice not in drawn]:
        notices.append(
            f"{len(moved)} of its {len(drawn)} runs are moved out of it by only_if, so that it is not balanced and no "
            "main effects are told; take the design grid or random, or leave out the factors that have rules."
        )
    return notices


def _rule_problems(rules: Rules, factors: Factors, base: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each thing that is wrong with rules; `base` are the dotted keys that no factor varies."""
    found: list[str] = []
    for key, others in rules.items():
        where = f"only_if.{key}"
        if key not in factors:
            found.append(f"only_if: {unknown_name('factor', key, factors)} Only what `factors` varies can have a rule.")
            continue
        if not others:
            found.append(f"{where}: names no other key; say where it varies, as in {{query.hyde: [always]}}.")
        for other, values in others.items():
            if other not in dotted_keys():
                found.append(f"{where}: {unknown_name('parameter', other, dotted_keys())}")
            elif other == key:
                found.append(f"{where}: a factor cannot wait for itself; name another key.")
            elif other in factors:
                known = listing(list(map(str, factors[other])))
                found += [
                    f"{where}: {value!r} is none of the values of {other}, which are {known}."
                    for value in values
                    if value not in factors[other]
                ]
            elif base.get(other) not in values:
                found.append(
                    f"{where}: {other} is {base.get(other)!r} in every variant, so that {key} would never vary; put "
                    f"{other} under `factors`, or take the rule out."
                )
            if not values:
                found.append(f"{where}: {other} has no values beside which {key} varies; give at least one.")
    try:
        _in_order({} if found else rules)
    except CycleError as error:
        found.append(f"only_if: the rules of {listing(sorted(set(error.args[1])))} wait for each other; take one out.")
    return found


def settled(base: Mapping[str, Any], choice: Mapping[str, Any], factors: Factors, rules: Rules | None) -> Changes:
    """Return a combination with the baseline value of each factor that may not vary in it."""
    found, rules = dict(choice), rules or {}
    for key in _in_order(rules):
        values = {**base, **found}
        if key in found and not all(values.get(other) in allowed for other, allowed in rules[key].items()):
            found[key] = factors[key][0]
    return found


def _in_order(rules: Rules) -> list[str]:
    """Return the factors of the rules, one that another's rule asks about before that other."""
    return [key for key in TopologicalSorter({key: set(rules[key]) for key in rules}).static_order() if key in rules]


def variant_id(changes: Mapping[str, Any], among: Collection[str]) -> str:
    """Return e.g. `hyde-always__rerank-none`, a safe name of a folder; `among` are all keys that the design varies."""
    names = _short_names(sorted({*among, *changes}))
    slugs = {key: _UNSAFE.sub("-", _plain(value)).strip(".-") or "empty" for key, value in changes.items()}
    return short_name("__".join(f"{names[key]}-{slugs[key]}" for key in changes), 96, dict(changes))


def variant_label(changes: Mapping[str, Any]) -> str:
    """Return `changes` for people: `hyde = always, rerank = none`."""
    names = _short_names(sorted(changes))
    return ", ".join(f"{names[key]} = {_plain(value)}" for key, value in changes.items())


def _short_names(keys: Collection[str]) -> dict[str, str]:
    """Return the last part of each key (the section of `section.name`), or the whole key where two would be equal."""
    parts = {key: key.rpartition(".") for key in keys}
    short = {key: section if last == "name" and section else last for key, (section, _, last) in parts.items()}
    names = list(short.values())
    return {key: name if names.count(name) == 1 else key.replace(".", "-") for key, name in short.items()}


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(inner)}" for key, inner in value.items())
    return value if isinstance(value, str) else json.dumps(value, default=str)
