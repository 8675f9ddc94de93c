"""What a fraction of a grid cannot tell apart, in plain words: its resolution, and what is confounded with what."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rag_lab._kit.wording import listing
from rag_lab.statistics.effects.factors import LONGEST, Word, aliases_of, words

_NAMED = 3  # interactions that one effect is confounded with, and pairs of interactions
_ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


def fraction_told(names: Sequence[str], runs: Sequence[Sequence[Hashable]]) -> str:
    """Return what runs of two levels a factor are of the grid of all, and what is confounded in them.

    Args:
        names: of the factors, in the order of the levels of each run.
        runs: the levels of each run; a run counts as often as it is planned.
    """
    found, share = words(runs), 2 ** len(names) // len(runs)
    many = f"{len(runs)} of the {2 ** len(names):,} combinations"
    if share == 1:
        return f"The fraction is the whole grid: {many}."
    if not found:
        return f"The fraction, {many}, confounds no effect with an interaction of fewer than {LONGEST} factors."
    resolution = min(map(len, found))
    return f"The fraction, {many}, has resolution {_ROMAN[resolution]}: {_confounded(names, found, resolution)}"


def _confounded(names: Sequence[str], found: Sequence[Word], resolution: int) -> str:
    alike = [aliases_of(frozenset({place}), found) for place in range(len(names))]
    told = [f"{name} with {_some(names, others)}" for name, others in zip(names, alike, strict=True) if others]
    free = [name for name, others in zip(names, alike, strict=True) if not others]
    mains = f"the main effect of {'; of '.join(told)}, so that each is the sum of all that it is confounded with"
    if free:
        mains += f"; {listing(free)} with no interaction of fewer than {LONGEST} factors"
    if resolution == 3:
        return f"it confounds {mains}."
    if resolution == 4:
        return f"it confounds {mains}; interactions of two are confounded with each other, and are not told."
    return f"it confounds {mains}; interactions of two are confounded with those of {resolution - 2} or more."


def _some(names: Sequence[str], others: Sequence[Word]) -> str:
    written = [" × ".join(names[place] for place in sorted(one)) for one in others]
    more = [f"{len(written) - _NAMED} more"] if len(written) > _NAMED else []
    return listing([*written[:_NAMED], *more])
