"""The built-in designs: which combinations of values are run, and the keys of an experiment file that belong to them.

`fractional` is a balanced part of the grid of factors with two values: Box and Hunter (1961), "The 2^(k-p) Fractional
Factorial Designs"; Montgomery, "Design and Analysis of Experiments", chapter 8. Some factors, the basic ones, are
crossed; each other factor has its second value where an odd, or an even, number of the basic factors in its generator
have theirs. The resolution is the length of the shortest product of factors that is the same in every run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from random import Random
from string import ascii_lowercase
from typing import Annotated, Any, get_args

from pydantic import Field, field_validator

from rag_lab._kit.section import Section
from rag_lab.experiment.design import Changes, ExperimentError, Factors, Wanted, check_size, first_values, settled
from rag_lab.stages.steps import Group, step_of

RACING, STAGED, OPTUNA = "racing", "staged", "optuna"  # names of designs that choose before they prove
SAMPLERS = ("tpe", "nsga2")
MOST_DRAWN = 100_000  # combinations that are looked at, where `only_if` makes most of them the same as others
N_MISSING = {
    "random": "n: missing; say how many variants the design random draws, the baseline included.",
    OPTUNA: "n: missing; say how many trials the design optuna makes, the baseline included.",
}
RESOLUTIONS = (3, 10)  # that can be asked for
MIN_ROUND = 10  # questions of the first round; fewer drop at random

DESIGNS_OF: Mapping[str, tuple[str, ...]] = {
    "n": ("fractional", "random", OPTUNA),
    "resolution": ("fractional",),
    "choose": (STAGED, OPTUNA),
    "objectives": (OPTUNA,),
    "sampler": (OPTUNA,),
}


class RaceConfig(Section):
    """How many questions the rounds of the design `racing` have, and how surely a variant is worse that they drop."""

    rounds: list[Annotated[int, Field(ge=MIN_ROUND, le=10_000_000)]] = Field(
        default_factory=list,
        max_length=5,
        description="questions of each round, the earlier ones among them; by the number of questions where empty",
    )
    error: float = Field(
        0.05, gt=0, le=0.5, description="the chance that the best variant of all is ever dropped, over all rounds"
    )

    @field_validator("rounds")
    @classmethod
    def _rounds_grow(cls, value: list[int]) -> list[int]:
        if any(later <= earlier for earlier, later in pairwise(value)):
            raise ValueError("must grow from round to round, as in [40, 100]")
        return value


def grid(base: Mapping[str, Any], factors: Factors, wanted: Wanted | None = None) -> list[Changes]:
    """Cross all values; first values are the baseline."""
    check_size(prod(len(values) for values in factors.values()), ", or use one_factor, fractional or random")
    return [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]


def one_factor(base: Mapping[str, Any], factors: Factors, wanted: Wanted | None = None) -> list[Changes]:
    """Leave the baseline, which first values make, in one factor at a time."""
    check_size(1 + sum(len(values) - 1 for values in factors.values()))
    first = first_values(factors)
    return [first, *(first | {key: value} for key, values in factors.items() for value in values[1:])]


def random_draw(base: Mapping[str, Any], factors: Factors, wanted: Wanted) -> list[Changes]:
    """Return the baseline and `n - 1` other combinations, fixed by seed and factors, in the order of the grid.

    Each combination that the rules between factors leave as it is is as likely as any other. The whole grid where it
    has no more than `n`.
    """
    if wanted.n is None:
        raise ExperimentError("n", [N_MISSING["random"]])
    check_size(wanted.n)
    size = prod(len(values) for values in factors.values())
    drawn = {0: first_values(factors)}  # by the place in the grid
    for place in Random(wanted.seed).sample(range(1, size), min(size - 1, MOST_DRAWN)):  # noqa: S311 (nothing secret)
        if len(drawn) >= wanted.n:
            break
        chosen, rest = Changes(), place
        for key in reversed(list(factors)):  # the last factor changes first
            rest, level = divmod(rest, len(factors[key]))
            chosen[key] = factors[key][level]
        choice = {key: chosen[key] for key in factors}
        if settled(base, choice, factors, wanted.only_if) == choice:
            drawn[place] = choice
    return [drawn[place] for place in sorted(drawn)]


def trial_placeholders(base: Mapping[str, Any], factors: Factors, wanted: Wanted) -> list[Changes]:
    """Return as many random combinations as there will be trials, each value among them, so that each is checked."""
    if wanted.n is None:
        raise ExperimentError("n", [N_MISSING[OPTUNA]])
    alone, n = one_factor(base, factors), min(wanted.n, prod(len(values) for values in factors.values()))
    others = [one for one in random_draw(base, factors, replace(wanted, n=n)) if one not in alone]
    return [*alone, *others[: max(0, n - len(alone))]]


def stages_of(factors: Factors) -> dict[str, tuple[str, ...]]:
    """Return the factors of each stage that has any, in the order of the pipeline; factors of one value are in none.

    What belongs to no stage is chosen last, with the answer.
    """
    stages: tuple[Group, ...] = get_args(Group)
    found: dict[str, tuple[str, ...]] = dict.fromkeys(stages, ())
    for key in (key for key, values in factors.items() if len(values) > 1):
        step = step_of(key)
        stage = step.group if step else stages[-1]
        if key.startswith("corpus.") or key in ("models.embedding", "models.vision"):
            stage = "corpus"
        found[stage] += (key,)
    return {stage: keys for stage, keys in found.items() if keys}


def stage_choices(factors: Factors, keys: tuple[str, ...], carried: Changes) -> list[Changes]:
    """Return all combinations of a stage's factors, the others as they are carried on; that one comes first."""
    crossed = (dict(zip(keys, values, strict=True)) for values in product(*(factors[key] for key in keys)))
    others = [carried | chosen for chosen in crossed]
    return [carried, *(one for one in others if one != carried)]


def staged(base: Mapping[str, Any], factors: Factors, wanted: Wanted) -> list[Changes]:
    """Return each stage's combinations beside the baseline's other values: what would run if no stage changed it."""
    stages = stages_of(factors)
    check_size(sum(prod(len(factors[key]) for key in keys) for keys in stages.values()))
    first = first_values(factors)
    return [first, *(one for keys in stages.values() for one in stage_choices(factors, keys, first)[1:])]


_RESOLUTION = 4  # where neither it nor a number of runs is given: no main effect beside an interaction of two
_LEAST = 3  # below it main effects are confounded with each other
_MOST_FACTORS = 24
_MOST_STEPS = 20_000  # of the search for generators, which is over long before where there are any
Generators = tuple[int, ...]  # one a factor: bits of the basic factors


def fractional(base: Mapping[str, Any], factors: Factors, wanted: Wanted) -> list[Changes]:
    """Return the runs of a fraction, the baseline first: the fewest of a resolution, or the best of at most `n` runs.

    Factors with one value are in every run. Where no part of the grid has the resolution it is the whole grid.
    """
    varied = [key for key, values in factors.items() if len(values) == 2]
    problems = [
        f"design: fractional takes factors with two values, and {key} has {len(values)}; take out "
        f"{len(values) - 2} of them, or take the design grid or random."
        for key, values in factors.items()
        if len(values) > 2
    ]
    if len(varied) > _MOST_FACTORS:
        problems.append(f"design: fractional takes at most {_MOST_FACTORS} factors, got {len(varied)}; take some out.")
    if wanted.n is not None and wanted.resolution is not None:
        problems.append("n: the design fractional takes a resolution or the most runs that it may have, not both.")
    if problems:
        raise ExperimentError("design", problems)
    generators, first = _chosen_generators(len(varied), wanted), first_values(factors)
    if not generators:
        return [first]
    from pyDOE3 import fracfact

    basic = max(one.bit_length() for one in generators)
    check_size(1 << basic, ", or a lower resolution")
    words = ("".join(ascii_lowercase[place] for place in range(basic) if one >> place & 1) for one in generators)
    signs = fracfact(" ".join(words))
    runs = [[bool(sign != lowest) for sign, lowest in zip(row, signs[0], strict=True)] for row in signs]
    return [first | {key: factors[key][is_second] for key, is_second in zip(varied, run, strict=True)} for run in runs]


def _chosen_generators(n_factors: int, wanted: Wanted) -> Generators:
    """Return those of the fewest runs of a resolution, or of the highest resolution with at most `n` runs."""
    whole = tuple(1 << place for place in range(n_factors))
    if n_factors < _LEAST:
        return whole
    if wanted.n is None or wanted.resolution is not None:
        fractions = (_generators(n_factors, basic, wanted.resolution or _RESOLUTION) for basic in range(1, n_factors))
        return next(filter(None, fractions), whole)
    if 1 << n_factors <= wanted.n:
        return whole
    basic = wanted.n.bit_length() - 1
    fractions = (_generators(n_factors, basic, resolution) for resolution in range(n_factors, _LEAST - 1, -1))
    if found := next(filter(None, fractions), ()):
        return found
    least = next(1 << basic for basic in range(1, n_factors + 1) if (1 << basic) > n_factors)
    problem = (
        f"n: {n_factors} factors need at least {least} runs for main effects that can be told apart, got {wanted.n}; "
        f"give n: {least} or more."
    )
    raise ExperimentError("n", [problem])


def _generators(n_factors: int, basic: int, resolution: int) -> Generators:
    """Return generators that give this resolution; empty where there are none.

    No `resolution - 1` or fewer of them may add up to nothing, bit by bit: depth first, longest generators first.
    """
    if n_factors <= basic:
        return ()
    found = sorted(range(1, 1 << basic), key=lambda bits: (-bits.bit_count(), bits))
    candidates = [bits for bits in found if bits.bit_count() >= resolution - 1]
    given = [1 << place for place in range(basic)]
    return tuple(_extended(given, candidates, n_factors, resolution, iter(range(_MOST_STEPS))) or ())


def _extended(
    chosen: list[int], candidates: list[int], n_factors: int, resolution: int, steps: Iterator[int]
) -> list[int] | None:
    if len(chosen) == n_factors:
        return chosen
    sums, reached = {0}, {0}  # of fewer than `resolution - 1` of the chosen
    for _ in range(resolution - 2):
        reached = {one ^ bits for one in reached for bits in chosen}
        sums |= reached
    free = [bits for bits in candidates if bits not in sums]
    for place, bits in enumerate(free):
        if len(free) - place < n_factors - len(chosen) or next(steps, None) is None:
            return None
        if found := _extended([*chosen, bits], free[place + 1 :], n_factors, resolution, steps):
            return found
    return None
