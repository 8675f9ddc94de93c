"""What a design takes and returns: factors, the rules between them, what each variant changes, and its name.

A rule lets a factor vary only where another key has certain values, elsewhere it keeps its baseline value:
`only_if: {retrieval.hyde_k: {query.hyde: [always, classified]}}`. Without HyDE there is one variant, whatever `hyde_k`
would be.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from rag_lab._kit.digest import short_name
from rag_lab._kit.wording import listing
from rag_lab.config import dotted_keys
from rag_lab.errors import ConfigError, unknown_name

MAX_VARIANTS = 1000
BASELINE = "baseline"
_MAX_ID_CHARS = 96
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


NOTHING_WANTED = Wanted()


def first_values(factors: Factors) -> Changes:
    """Return the baseline: the first value of each factor."""
    return {key: values[0] for key, values in factors.items()}


def check_size(n: int, instead: str = "") -> None:
    """Refuse more than `MAX_VARIANTS`, before they are made, which would take the memory of all."""
    if n > MAX_VARIANTS:
        message = f"The design has {n:,} variants, and at most {MAX_VARIANTS:,} are allowed; take out values{instead}."
        raise ExperimentError("factors", [message])


def rule_problems(rules: Rules, factors: Factors, base: Mapping[str, Any]) -> list[str]:
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
    if not found:
        try:
            _in_order(rules)
        except CycleError as error:
            found.append(
                f"only_if: the rules of {listing(sorted(set(error.args[1])))} wait for each other; take one out."
            )
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


def varying_where(drawn: Mapping[str, Any], choice: Mapping[str, Any], rules: Rules) -> str:
    """Return the rules that made a combination another one than was drawn, in words; '' where none did."""
    sentences = []
    for key in (key for key in rules if key in drawn and drawn[key] != choice[key]):
        where = [f"{other} is {' or '.join(map(str, values))}" for other, values in rules[key].items()]
        sentences.append(f"only_if lets {key} vary only where {' and '.join(where)}")
    return " and ".join(sentences)


def variant_id(changes: Mapping[str, Any], among: Collection[str]) -> str:
    """Return e.g. `hyde-always__rerank-none`, a safe name of a folder; `among` are all keys that the design varies."""
    names = _short_names(sorted({*among, *changes}))
    slugs = {key: _UNSAFE.sub("-", _plain(value)).strip(".-") or "empty" for key, value in changes.items()}
    return short_name("__".join(f"{names[key]}-{slugs[key]}" for key in changes), _MAX_ID_CHARS, dict(changes))


def variant_label(changes: Mapping[str, Any]) -> str:
    """Return `changes` for people: `hyde = always, rerank = none`."""
    names = _short_names(sorted(changes))
    return ", ".join(f"{names[key]} = {_plain(value)}" for key, value in changes.items())


def unique(name: str, taken: Iterable[str]) -> str:
    """Return `name`, numbered if it is taken; file systems that fold case count as taken too."""
    folded = {other.casefold() for other in taken} | {BASELINE}
    number, candidate = 2, name
    while candidate.casefold() in folded:
        candidate, number = f"{name}-{number}", number + 1
    return candidate


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
