"""How alike two rankings are: rank-biased overlap, and what their tops share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

PERSISTENCE = 0.9  # the first ten ranks have 86% of the weight (Webber et al. 2010, section 4.4)


def rank_biased_overlap(
    first: Sequence[Hashable], second: Sequence[Hashable], persistence: float = PERSISTENCE
) -> float:
    """Return the extrapolated rank-biased overlap of two rankings, best first: 1 the same, 0 nothing in common.

    Webber, Moffat and Zobel (2010), A similarity measure for indefinite rankings, equation 32: the mean overlap of the
    two tops over all depths, where depth d + 1 weighs `persistence` times depth d, and the lists go on as they were
    seen. So a list and its own beginning have 1. Two empty lists have 1, an empty one and another 0. What is named
    twice in a list stands at its first place.
    """
    short, long = sorted((list(dict.fromkeys(first)), list(dict.fromkeys(second))), key=len)
    if not short:
        return float(not long)
    seen: tuple[set[Hashable], set[Hashable]] = (set(), set())
    overlap, total, weight = 0, 0.0, 1.0
    at_end_of_short = 0
    for depth in range(1, len(long) + 1):
        added = {long[depth - 1], *short[depth - 1 : depth]}
        seen[0].update(short[depth - 1 : depth])
        seen[1].add(long[depth - 1])
        overlap += sum(one in seen[0] and one in seen[1] for one in added)
        if depth <= len(short):
            at_end_of_short = overlap
        beyond = at_end_of_short * max(0, depth - len(short)) / len(short)
        total += (overlap + beyond) / depth * weight
        weight *= persistence
    rest = (overlap - at_end_of_short) / len(long) + at_end_of_short / len(short)
    return min(1.0, (1 - persistence) * total + rest * weight)


def shared_at(first: Sequence[Hashable], second: Sequence[Hashable], k: int) -> float:
    """Return the share of the top `k` that both rankings have, of the longer of the two tops; 1 where both are empty.

    Example:
        >>> shared_at("abc", "bcd", 2)
        0.5
    """
    one, other = set(list(dict.fromkeys(first))[:k]), set(list(dict.fromkeys(second))[:k])
    longest = max(len(one), len(other))
    return len(one & other) / longest if longest else 1.0
