"""What a design takes and returns: factors, the rules between them, and what each variant changes.

A rule lets a factor vary only where another key has certain values, elsewhere it keeps its baseline value:
`only_if: {retrieval.hyde_k: {query.hyde: [always, classified]}}`. Without HyDE there is one variant, whatever `hyde_k`
would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from rag_lab._kit.wording import listing
from rag_lab.config import dotted_keys
from rag_lab.errors import unknown_name
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
        message = f"The design has {n:,} variants, and at most {MAX_VARIANTS:,} are allowed; take out values{instead}."
        raise ExperimentError("factors", [message])


def rule_problems(rules: Rules, factors: Factors, base: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each thing that is wrong with rules; `base` are the dotted keys that no factor varies."""
    found = [problem for key, others in rules.items() for problem in _problems(key, others, factors, base)]
    return found or _circle(rules)


def settled(base: Mapping[str, Any], choice: Mapping[str, Any], factors: Factors, rules: Rules | None) -> Changes:
    """Return a combination with the baseline value of each factor that may not vary in it."""
    found = dict(choice)
    for key in _in_order(rules or {}):
        if key in found and not _holds((rules or {})[key], {**base, **found}):
            found[key] = factors[key][0]
    return found


def varying_where(drawn: Mapping[str, Any], choice: Mapping[str, Any], rules: Rules) -> str:
    """Return the rules that made a combination another one than was drawn, in words; '' where none did."""
    changed = [key for key in rules if key in drawn and drawn[key] != choice[key]]
    return " and ".join(f"only_if lets {key} vary only where {_where(rules[key])}" for key in changed)


def _where(others: Mapping[str, Sequence[Any]]) -> str:
    return " and ".join(f"{other} is {' or '.join(map(str, values))}" for other, values in others.items())


def _holds(others: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    return all(values.get(other) in allowed for other, allowed in others.items())


def _in_order(rules: Rules) -> list[str]:
    """Return the factors of the rules, one that another's rule asks about before that other."""
    return [key for key in TopologicalSorter({key: set(rules[key]) for key in rules}).static_order() if key in rules]


def _circle(rules: Rules) -> list[str]:
    try:
        _in_order(rules)
    except CycleError as error:
        return [f"only_if: the rules of {listing(sorted(set(error.args[1])))} wait for each other; take one out."]
    return []


def _problems(key: str, others: Mapping[str, Any], factors: Factors, base: Mapping[str, Any]) -> list[str]:
    where = f"only_if.{key}"
    if key not in factors:
        return [f"only_if: {unknown_name('factor', key, factors)} Only what `factors` varies can have a rule."]
    if not others:
        return [f"{where}: names no other key; say where it varies, as in {{query.hyde: [always]}}."]
    found = []
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
    return found
