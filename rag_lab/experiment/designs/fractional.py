"""The design `fractional`: a balanced part of the grid of factors with two values.

Box and Hunter (1961), "The 2^(k-p) Fractional Factorial Designs"; Montgomery, "Design and Analysis of Experiments",
chapter 8. Some factors, the basic ones, are crossed; each other factor has its second value where an odd, or an even,
number of the basic factors in its generator have theirs. The resolution is the length of the shortest product of
factors that is the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from rag_lab.comparison.tables.effects import fraction_sentence
from rag_lab.experiment.designs.factors import Changes, Factors, Wanted, check_size, first_values
from rag_lab.experiment.experiment_error import ExperimentError

RESOLUTION = 4  # where neither it nor a number of runs is given: no main effect beside an interaction of two
LEAST = 3  # below it main effects are confounded with each other
MOST_FACTORS = 24
_MOST_STEPS = 20_000  # of the search for generators, which is over long before where there are any
_NOTHING = Wanted()


def fractional(base: Mapping[str, Any], factors: Factors, wanted: Wanted = _NOTHING) -> list[Changes]:
    """Return the runs of a fraction, the baseline first: the fewest of a resolution, or the best of at most `n` runs.

    Factors with one value are in every run. Where no part of the grid has the resolution it is the whole grid.

    Raises:
        ExperimentError: if a factor has more than two values, or no fraction is as small as `n`.
    """
    varied = [key for key, values in factors.items() if len(values) == 2]
    if problems := _problems(factors, varied, wanted):
        raise ExperimentError("design", problems)
    first = first_values(factors)
    if len(varied) < LEAST:
        generators = tuple(1 << place for place in range(len(varied)))
    elif wanted.n is not None and wanted.resolution is None:
        generators = _best_within(len(varied), wanted.n)
    else:
        generators = _fewest(len(varied), wanted.resolution or RESOLUTION)
    if not generators and varied:
        raise ExperimentError("n", [_too_few(len(varied), wanted.n or 0)])
    check_size(1 << max(one.bit_length() for one in generators) if generators else 1, ", or a lower resolution")
    return [first | _second_values(varied, factors, run) for run in _runs(generators)]


def _problems(factors: Factors, varied: list[str], wanted: Wanted) -> list[str]:
    found = [
        f"design: fractional takes factors with two values, and {key} has {len(values)}; take out "
        f"{len(values) - 2} of them, or take the design grid or random."
        for key, values in factors.items()
        if len(values) > 2
    ]
    if len(varied) > MOST_FACTORS:
        found.append(f"design: fractional takes at most {MOST_FACTORS} factors, got {len(varied)}; take some out.")
    if wanted.n is not None and wanted.resolution is not None:
        found.append("n: the design fractional takes a resolution or the most runs that it may have, not both.")
    return found


def _too_few(n_factors: int, n: int) -> str:
    least = next(1 << basic for basic in range(1, n_factors + 1) if (1 << basic) > n_factors)
    return (
        f"n: {n_factors} factors need at least {least} runs for main effects that can be told apart, got {n}; give "
        f"n: {least} or more."
    )


def _fewest(n_factors: int, resolution: int) -> tuple[int, ...]:
    """Return the generators of the fraction with the fewest runs that has this resolution."""
    for basic in range(1, n_factors):
        if found := _generators(n_factors, basic, resolution):
            return found
    return tuple(1 << place for place in range(n_factors))


def _best_within(n_factors: int, n: int) -> tuple[int, ...]:
    """Return the generators of the fraction of highest resolution with at most `n` runs; empty where there is none."""
    if 1 << n_factors <= n:
        return tuple(1 << place for place in range(n_factors))
    for resolution in range(n_factors, LEAST - 1, -1):
        if found := _generators(n_factors, n.bit_length() - 1, resolution):
            return found
    return ()


def _generators(n_factors: int, basic: int, resolution: int) -> tuple[int, ...]:
    """Return a generator a factor, bits of basic factors, that give this resolution; empty where there are none.

    No `resolution - 1` or fewer of them may add up to nothing, bit by bit: depth first, longest generators first.
    """
    given = [1 << place for place in range(basic)]
    found = sorted(range(1, 1 << basic), key=lambda bits: (-bits.bit_count(), bits))
    candidates = [bits for bits in found if bits.bit_count() >= resolution - 1]
    if n_factors <= basic:
        return ()
    steps = iter(range(_MOST_STEPS))
    return tuple(_extended(given, candidates, n_factors, resolution, steps) or ())


def _extended(
    chosen: list[int], candidates: list[int], n_factors: int, resolution: int, steps: Iterator[int]
) -> list[int] | None:
    if len(chosen) == n_factors:
        return chosen
    free = _free(chosen, candidates, resolution)
    for place, bits in enumerate(free):
        if len(free) - place < n_factors - len(chosen) or next(steps, None) is None:
            return None
        if found := _extended([*chosen, bits], free[place + 1 :], n_factors, resolution, steps):
            return found
    return None


def _free(chosen: list[int], candidates: list[int], resolution: int) -> list[int]:
    """Return the candidates that are no sum of fewer than `resolution - 1` of the chosen."""
    sums = {0}
    reached = {0}
    for _ in range(resolution - 2):
        reached = {one ^ bits for one in reached for bits in chosen}
        sums |= reached
    return [bits for bits in candidates if bits not in sums]


def _runs(generators: tuple[int, ...]) -> list[list[bool]]:
    """Return for each run which factors have their second value; the first run has none."""
    if not generators:
        return [[]]
    from pyDOE3 import fracfact

    basic = max(one.bit_length() for one in generators)
    words = ("".join(ascii_lowercase[place] for place in range(basic) if one >> place & 1) for one in generators)
    signs = fracfact(" ".join(words))
    return [[bool(sign != lowest) for sign, lowest in zip(row, signs[0], strict=True)] for row in signs]


def _second_values(varied: list[str], factors: Factors, run: list[bool]) -> Changes:
    return {key: factors[key][is_second] for key, is_second in zip(varied, run, strict=True)}


def fraction_notices(factors: Factors, drawn: Sequence[Changes], choices: Sequence[Changes]) -> list[str]:
    """Return the notices of a fraction as it was drawn, and as rules between factors have left it."""
    names = [key for key, values in factors.items() if len(values) > 1]
    if not names:
        return []
    notices = [fraction_sentence(names, [[repr(run[name]) for name in names] for run in drawn])]
    moved = [choice for choice in choices if choice not in drawn]
    if moved:
        notices.append(
            f"{len(moved)} of its {len(drawn)} runs are moved out of it by only_if, so that it is not balanced and no "
            "main effects are told; take the design grid or random, or leave out the factors that have rules."
        )
    return notices
