"""What a balanced fraction of a grid cannot tell apart: effects whose columns are the same in every run.

Box and Hunter (1961), "The 2^(k-p) Fractional Factorial Designs": a *word* is a set of factors whose product is the
same in every run. An effect is confounded with every other that a word makes of it: in a fraction with the word ABC, A
with B × C. The *resolution* is the length of the shortest word.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import reduce
from itertools import combinations
from operator import xor

Word = frozenset[int]  # places of factors

LONGEST = 6  # of the words that are looked for; effects of longer ones are confounded with nothing that is likely


def words(runs: Sequence[Sequence[Hashable]], longest: int = LONGEST) -> list[Word]:
    """Return the words of a fraction with at most `longest` factors, the shortest first; none of a full grid.

    Args:
        runs: the level of each factor in each run, of two levels a factor.
        longest: of the words that are looked for.
    """
    columns = [_bits([run[place] != runs[0][place] for run in runs]) for place in range(len(runs[0]))]
    sizes = range(1, min(longest, len(columns)) + 1)
    places = (chosen for size in sizes for chosen in combinations(range(len(columns)), size))
    return [frozenset(chosen) for chosen in places if not reduce(xor, (columns[place] for place in chosen))]


def is_balanced(runs: Sequence[Sequence[Hashable]]) -> bool:
    """Tell whether every two factors have all four pairs of their levels equally often."""
    n = len(runs)
    columns = [_bits([run[place] != runs[0][place] for run in runs]) for place in range(len(runs[0]))]
    sums = (reduce(xor, pair) for size in (1, 2) for pair in combinations(columns, size))
    return all(2 * one.bit_count() == n for one in sums)


def aliases_of(effect: Word, among: Sequence[Word]) -> list[Word]:
    """Return the effects of fewest factors that words make of this one, the shortest first."""
    found = [effect ^ word for word in among]
    return sorted((one for one in found if one), key=lambda one: (len(one), sorted(one)))


def _bits(values: Sequence[bool]) -> int:
    return sum(1 << place for place, value in enumerate(values) if value)
