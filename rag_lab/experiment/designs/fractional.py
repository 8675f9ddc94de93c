"""The design `fractional`: a balanced part of the grid of factors with two values.

Box and Hunter (1961), "The 2^(k-p) Fractional Factorial Designs"; Montgomery, "Design and Analysis of Experiments",
chapter 8. Some factors, the basic ones, are crossed; each other factor has its second value where an odd, or an even,
number of the basic factors in its generator have theirs. The resolution is the length of the shortest product of
factors that is the same in every run.
"""

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from rag_lab.experiment.designs.factors import (
    NOTHING_WANTED,
    Changes,
    ExperimentError,
    Factors,
    Wanted,
    check_size,
    first_values,
)

RESOLUTION = 4  # where neither it nor a number of runs is given: no main effect beside an interaction of two
LEAST = 3  # below it main effects are confounded with each other
MOST_FACTORS = 24
_MOST_STEPS = 20_000  # of the search for generators, which is over long before where there are any
Generators = tuple[int, ...]  # one a factor: bits of the basic factors


def fractional(base: Mapping[str, Any], factors: Factors, wanted: Wanted = NOTHING_WANTED) -> list[Changes]:
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
    if len(varied) > MOST_FACTORS:
        problems.append(f"design: fractional takes at most {MOST_FACTORS} factors, got {len(varied)}; take some out.")
    if wanted.n is not None and wanted.resolution is not None:
        problems.append("n: the design fractional takes a resolution or the most runs that it may have, not both.")
    if problems:
        raise ExperimentError("design", problems)
    generators = _chosen_generators(len(varied), wanted)
    check_size(1 << max(one.bit_length() for one in generators) if generators else 1, ", or a lower resolution")
    first = first_values(factors)
    return [
        first | {key: factors[key][is_second] for key, is_second in zip(varied, run, strict=True)}
        for run in _runs(generators)
    ]


def _chosen_generators(n_factors: int, wanted: Wanted) -> Generators:
    """Return those of the fewest runs of a resolution, or of the highest resolution with at most `n` runs."""
    whole = tuple(1 << place for place in range(n_factors))
    if n_factors < LEAST:
        return whole
    if wanted.n is None or wanted.resolution is not None:
        fractions = (_generators(n_factors, basic, wanted.resolution or RESOLUTION) for basic in range(1, n_factors))
        return next(filter(None, fractions), whole)
    if 1 << n_factors <= wanted.n:
        return whole
    basic = wanted.n.bit_length() - 1
    fractions = (_generators(n_factors, basic, resolution) for resolution in range(n_factors, LEAST - 1, -1))
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


def _runs(generators: Generators) -> list[list[bool]]:
    """Return for each run which factors have their second value; the first run has none."""
    if not generators:
        return [[]]
    from pyDOE3 import fracfact

    basic = max(one.bit_length() for one in generators)
    words = ("".join(ascii_lowercase[place] for place in range(basic) if one >> place & 1) for one in generators)
    signs = fracfact(" ".join(words))
    return [[bool(sign != lowest) for sign, lowest in zip(row, signs[0], strict=True)] for row in signs]


def fraction_notices(factors: Factors, drawn: Sequence[Changes], choices: Sequence[Changes]) -> list[str]:
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
