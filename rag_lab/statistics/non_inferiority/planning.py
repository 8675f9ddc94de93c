"""How many questions it takes to say "not worse by more than the margin", if there is no true difference.

A plan knows the spread by the differences of an earlier run, or a pilot. A small pilot knows it only roughly. So the
truth is drawn as well as the rerun: the units of the pilot get weights from the uniform distribution on those that add
up to one (Rubin 1981, "The Bayesian Bootstrap"), differences are moved to a mean of zero, n units are drawn, and the
test is made as it will be, with the unit that it appends.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri, stdtrit

from rag_lab._kit.wording import counted
from rag_lab.statistics.bootstrap import Floats, Units
from rag_lab.statistics.bounded_mean import p_mean_about
from rag_lab.statistics.intervals import ENOUGH_DIFFERING
from rag_lab.statistics.per_question import Clusters, unit_places, with_failures_at
from rag_lab.statistics.randomization import hommel, smallest_n
from rag_lab.statistics.scales import Scale
from rag_lab.statistics.verdict import ALPHA

LEAST_QUESTIONS = 40  # with fewer the spread is anybody's guess
LEAST_DIFFERING = smallest_n(ALPHA)  # units that differ; with fewer no test finds anything

_LEAST_UNITS = 6
MOST_UNITS = 20_000
N_RERUNS = 200
_GROWTH = 1.35  # from one number of units that is tried to the next
_CELLS = 500_000  # values held in memory at once
_MOST_CELLS, _LEAST_RERUNS = 2_000_000, 50  # for one number of units
_AIM = 0.84  # on average over pilots a power of 0.8 comes of it: the spread that a pilot missed is mostly large
_ENOUGH, _CERTAIN = 0.9, 0.99

Family = Callable[[Floats], Floats]  # p-values of reruns, (reruns, k), to those corrected in their family


@dataclass(frozen=True, slots=True)
class Pilot:
    """The differences of the contrasts of one metric, more being better, summed in each unit.

    sums, counts: (units, contrasts); 0 where a question has no difference. The units are those of all metrics.
    reach: (contrasts,) the largest possible difference of a question; None where the metric has no such bound.
    """

    keys: tuple[Any, ...]
    sums: Floats
    counts: Floats
    reach: Floats | None

    def column(self, place: int) -> Units:
        """Return the units of one contrast that have a difference."""
        has = self.counts[:, place] > 0
        return Units(self.sums[has, place], self.counts[has, place])

    def interval_reach(self, place: int, n_units: int) -> float:
        """Return how far the interval of so many units reaches where few of them differ, which guards it; else 0."""
        column = self.column(place)
        n, apart = len(column.sums), int(np.count_nonzero(column.sums))
        if self.reach is None or apart * n_units >= ENOUGH_DIFFERING * n or n_units < 2:
            return 0.0
        one_more = float(self.reach[place]) / (n_units + 1)
        error = (column.standard_error or 0.0) * math.sqrt(n / n_units)
        return one_more + float(stdtrit(n_units, 1 - ALPHA / 2)) * math.hypot(error, one_more)

    @property
    def measured(self) -> npt.NDArray[np.bool_]:
        """Which units have a difference in any contrast."""
        return np.asarray((self.counts > 0).any(axis=1))

    def problem(self, place: int, unit: str = "question") -> str:
        """Return why nothing can be planned for a contrast, or ''; `unit` is what the units are called."""
        column = self.column(place)
        n, apart = column.n, int(np.count_nonzero(column.sums))
        if n < LEAST_QUESTIONS:
            return f"{counted(n, 'question')} {'was' if n == 1 else 'were'} compared, and it takes {LEAST_QUESTIONS}"
        if apart < LEAST_DIFFERING:
            some = (
                f"only {apart} of {counted(len(column.sums), unit)}" if apart else f"none of {len(column.sums)} {unit}s"
            )
            return f"{some} differ{'s' if apart < 2 else ''}, too few to know how large differences become"
        return ""


def pilot_of(
    questions: pd.DataFrame,
    metric: Any,
    contrasts: Mapping[Any, Mapping[Any, float]],
    scale: Scale,
    clusters: Clusters | None = None,
) -> Pilot:
    """Return the differences of a metric, from what `per_question` returns.

    Failures count at the ends of the scale, as in `margin_tests`, or not at all where it has none.
    """
    ours = questions[questions["metric"] == metric]
    places = unit_places(questions["question_id"], clusters)
    everybody, unit = list(places), np.array(list(places.values()), dtype=np.intp)
    sums, counts = (np.zeros((len(set(places.values())), len(contrasts))) for _ in range(2))
    for column, weights in enumerate(contrasts.values()):
        total: pd.Series[float] | None = None  # the weighted sum of each question that all variants have
        for variant, weight in ((one, weight) for one, weight in weights.items() if weight):
            rows = ours[ours["variant_id"] == variant].set_index("question_id")
            value = with_failures_at(rows, scale.worst if weight > 0 else scale.best)
            part = value.astype(float) * (weight * scale.sign)
            total = part if total is None else total.add(part)
        differences = pd.Series(dtype=float) if total is None else total
        values = differences.reindex(everybody).to_numpy(dtype=np.float64)
        np.add.at(sums[:, column], unit, np.nan_to_num(values))
        np.add.at(counts[:, column], unit, np.isfinite(values))
    weights_up = [sum(weight for weight in weights.values() if weight > 0) for weights in contrasts.values()]
    reach = None if scale.width is None else np.array(weights_up, dtype=np.float64) * scale.width
    return Pilot(tuple(contrasts), sums, counts, reach)


@dataclass(frozen=True, slots=True)
class ForMargin:
    """The test of "not worse by more than the margin" of one contrast, if there is no true difference.

    `power` is the chance of the statement with the planned units, `needed` how many units a power of 0.8 takes: in the
    family, in one of half its size, and alone; None where more than 20,000.
    """

    power: float
    needed: tuple[int | None, int | None, int | None]


def questions_for_margin(column: Units, margin: float, reach: float, n_tests: int = 1) -> int | None:
    """Return how many units show "not worse by the margin" with power 0.8, if nothing differs; None over 20,000.

    `column` has differences that were seen, more being better; `reach` is the largest possible difference of a
    question, `n_tests` the size of the family, at whose strictest step it is to be shown.
    """
    reruns = _Reruns(column.sums[:, None], column.counts[:, None], margin, np.array([reach]), seed=0)
    tried = reruns.tried([lambda p_values: p_values * n_tests])
    return _needed(tried[0])[0]


def for_margin(
    sums: Floats, counts: Floats, margin: float, reach: Floats, n_units: int, seed: int = 0
) -> list[ForMargin]:
    """Return what a plan of `n_units` questions, or clusters, could show of each contrast of a family, and what it
    takes.

    `sums` and `counts`, (m, k), are of the differences of each unit of the pilot, more being better; 0 where missing.
    `margin` is the largest mean loss that would be accepted, `reach`, (k,), the largest possible difference of a
    question.
    """
    reruns = _Reruns(sums, counts, margin, reach, seed)
    family, halves, alone = (
        _needed(tried) for tried in reruns.tried([_together, _in_halves, lambda p_values: p_values])
    )
    planned = (_together(reruns.p_values(n_units)) < ALPHA).mean(axis=0)
    needed = zip(family, halves, alone, strict=True)
    return [ForMargin(float(power), units) for power, units in zip(planned, needed, strict=True)]


@dataclass(frozen=True, slots=True)
class _Reruns:
    """Reruns of a sweep in which nothing differs in the mean; the arguments are those of `for_margin`."""

    sums: Floats
    counts: Floats
    margin: float
    reach: Floats
    seed: int

    def p_values(self, n: int, without: npt.NDArray[np.bool_] | None = None) -> Floats:
        """Return the p-values of each rerun with n units, (reruns, k); 0 for contrasts that are left out."""
        m, k = self.sums.shape
        random = np.random.default_rng([self.seed, 6])
        kept = np.ones(k, dtype=bool) if without is None else ~without
        # Of a large pilot fewer reruns, so that no dry run waits: what the spread is known by are its units.
        found = np.zeros((int(np.clip(_MOST_CELLS / self.sums.size, _LEAST_RERUNS, N_RERUNS)), k))
        at_once = max(1, _CELLS // (m * k))
        for start in range(0, len(found), at_once):
            truth = random.dirichlet(np.ones(m), len(found[start : start + at_once]))
            found[start : start + at_once, kept] = self._tested(truth, random.multinomial(n, truth), kept)
        return found

    def _tested(self, truth: Floats, drawn: npt.NDArray[np.int64], kept: npt.NDArray[np.bool_]) -> Floats:
        """Return the p-values (b, k) of reruns in which each unit of the pilot was `drawn` (b, m) so many times."""
        sums, counts, times = self.sums[:, kept], self.counts[:, kept], drawn.astype(np.float64)
        means = truth @ sums / (truth @ counts)
        n = times @ counts
        size = np.divide(times @ counts**2, n, out=np.ones_like(n), where=n > 0)
        values = sums[:, None, :] + (self.margin - means) * counts[:, None, :]
        worst = (self.margin - self.reach[kept]) * size
        flat = values.reshape(len(sums), -1)
        each = np.repeat(times.T, sums.shape[1], axis=1)
        return p_mean_about(flat, each, worst.ravel()).reshape(worst.shape)

    def tried(self, families: Sequence[Family]) -> list[list[tuple[int, Floats]]]:
        """Return for each family of tests the numbers of units that were tried, with the power of each contrast.

        It ends where all contrasts have the power, or would take too many units.
        """
        found: list[list[tuple[int, Floats]]] = [[] for _ in families]
        least = float(self.reach.min()) / self.margin  # with fewer units the one that is appended outweighs them
        n, certain = max(_LEAST_UNITS, math.ceil(least)), np.zeros(self.sums.shape[1], dtype=bool)
        while n <= _GROWTH * MOST_UNITS:
            p_values = self.p_values(n, certain)
            powers = [np.asarray((family(p_values) < ALPHA).mean(axis=0)) for family in families]
            for tried, power in zip(found, powers, strict=True):
                tried.append((n, power))
            if min(power.min() for power in powers) > _ENOUGH:
                break
            certain = (p_values < ALPHA / p_values.shape[1]).mean(axis=0) > _CERTAIN
            n = math.ceil(n * _GROWTH)
        return found


def _together(p_values: Floats) -> Floats:
    return np.array([hommel(row.tolist()) for row in p_values], dtype=np.float64)


def _in_halves(p_values: Floats) -> Floats:
    halves = np.empty_like(p_values)
    for first in range(min(2, p_values.shape[1])):
        halves[:, first::2] = _together(p_values[:, first::2])
    return halves


def _needed(tried: Sequence[tuple[int, Floats]]) -> list[int | None]:
    """Return for each contrast where its power passes 0.8, between the numbers of units that were tried."""
    sizes = np.log([n for n, _ in tried])
    powers = np.maximum.accumulate(np.array([power for _, power in tried]))
    # Power is nearly a straight line in the logarithm of the units once it is read off the normal curve.
    lines = ndtri(np.clip(powers, 0.5 / N_RERUNS, 1 - 0.5 / N_RERUNS))
    wanted = float(ndtri(_AIM))
    found: list[int | None] = []
    for line in lines.T:
        after = int(np.searchsorted(line, wanted))
        if after == len(line):
            found.append(None)
            continue
        found.append(math.ceil(math.exp(np.interp(wanted, line[: after + 1], sizes[: after + 1]))))
    return [None if n is None or n > MOST_UNITS else n for n in found]
