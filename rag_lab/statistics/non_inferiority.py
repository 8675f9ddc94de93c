"""Not worse by more than a margin: what may be left out, and how many questions it takes to say so.

A test of non-inferiority asks the other way round: its null hypothesis is that the variant loses more than the margin
(Wellek 2010, "Testing Statistical Hypotheses of Equivalence and Noninferiority", chapter 1). Rare large losses are what
it must not miss: a loss of 1.0 on one question of a hundred may not be among those that were asked, and Student's test
would see no spread. So one unit more is taken to have been asked, with the worst difference that the metric allows, and
what weight it has is left open (see `bounded_mean`). With that unit but Student's distribution, 117 questions without
a loss would have p = 0.000002 at a margin of 0.05, where a loss on 5% of questions stays unseen with 0.0025: too small
for a family.

A variant's failures count at the metric's worst value, those of what it is compared with at the best. Differences are
turned so that more is better.

A plan assumes that there is no true difference, and knows the spread by the differences of an earlier run, or a pilot.
A small pilot knows it only roughly. So the truth is drawn as well as the rerun: the units of the pilot get weights from
the uniform distribution on those that add up to one (Rubin 1981, "The Bayesian Bootstrap"), differences are moved to a
mean of zero, n units are drawn, and the test is made as it will be, with the unit that it appends.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri, stdtrit

from rag_lab._kit.wording import counted, plain
from rag_lab.errors import ConfigError
from rag_lab.statistics import summaries
from rag_lab.statistics.bounded_mean import p_mean_about, p_not_worse
from rag_lab.statistics.intervals import ENOUGH_DIFFERING, Floats, Units, units
from rag_lab.statistics.randomization import ALPHA, hommel, smallest_n

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
    """The differences of the contrasts of one metric, more being better, summed in each unit of any metric."""

    keys: tuple[Any, ...]
    sums: Floats  # (units, contrasts); 0 where a question has no difference
    counts: Floats  # likewise
    reach: Floats | None  # (contrasts,) the largest possible difference of a question; None where there is none

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
    scale: summaries.Scale,
    clusters: summaries.Clusters | None = None,
) -> Pilot:
    """Return the differences of a metric, from what `per_question` returns, failures at the ends of the scale."""
    ours = questions[questions["metric"] == metric]
    places = summaries.unit_places(questions["question_id"], clusters)
    everybody, unit = list(places), np.array(list(places.values()), dtype=np.intp)
    sums, counts = (np.zeros((len(set(places.values())), len(contrasts))) for _ in range(2))
    for column, weights in enumerate(contrasts.values()):
        total: pd.Series[float] | None = None  # the weighted sum of each question that all variants have
        for variant, weight in ((one, weight) for one, weight in weights.items() if weight):
            rows = ours[ours["variant_id"] == variant].set_index("question_id")
            value = summaries.with_failures_at(rows, scale.worst if weight > 0 else scale.best)
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
    """The test of "not worse by more than the margin" of one contrast, if there is no true difference."""

    power: float  # the chance of the statement with the planned units
    # How many units a power of 0.8 takes: in the family, in one of half its size, and alone; None over 20,000.
    needed: tuple[int | None, int | None, int | None]


def questions_for_margin(column: Units, margin: float, reach: float, n_tests: int = 1) -> int | None:
    """Return how many units show "not worse by the margin" with power 0.8, if nothing differs; None over 20,000.

    It is to be shown at the strictest step of a family of `n_tests`.
    """
    reruns = _Reruns(column.sums[:, None], column.counts[:, None], margin, np.array([reach]), seed=0)
    tried = reruns.tried([lambda p_values: p_values * n_tests])
    return _needed(tried[0])[0]


def for_margin(
    sums: Floats, counts: Floats, margin: float, reach: Floats, n_units: int, seed: int = 0
) -> list[ForMargin]:
    """Return what a plan of `n_units` questions, or clusters, could show of each contrast, and what it takes.

    `sums` and `counts`, (m, k), and `reach`, (k,), are those of a `Pilot`; `margin` is the largest mean loss that would
    be accepted.
    """
    reruns = _Reruns(sums, counts, margin, reach, seed)
    family, halves, alone = (_needed(tried) for tried in reruns.tried([_together, _in_halves, lambda p: p]))
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
        sums, counts = self.sums[:, kept], self.counts[:, kept]
        # Of a large pilot fewer reruns, so that no dry run waits: what the spread is known by are its units.
        found = np.zeros((int(np.clip(_MOST_CELLS / self.sums.size, _LEAST_RERUNS, N_RERUNS)), k))
        at_once = max(1, _CELLS // (m * k))
        for start in range(0, len(found), at_once):
            truth = random.dirichlet(np.ones(m), len(found[start : start + at_once]))
            times = random.multinomial(n, truth).astype(
                np.float64
            )  # how often each unit of the pilot was drawn, (b, m)
            drawn = times @ counts
            size = np.divide(times @ counts**2, drawn, out=np.ones_like(drawn), where=drawn > 0)
            values = sums[:, None, :] + (self.margin - truth @ sums / (truth @ counts)) * counts[:, None, :]
            worst = (self.margin - self.reach[kept]) * size
            each = np.repeat(times.T, sums.shape[1], axis=1)
            p_values = p_mean_about(values.reshape(len(sums), -1), each, worst.ravel())
            found[start : start + at_once, kept] = p_values.reshape(worst.shape)
        return found

    def tried(self, families: Sequence[Family]) -> list[list[tuple[int, Floats]]]:
        """Return for each family of tests the numbers of units that were tried, with the power of each contrast."""
        found: list[list[tuple[int, Floats]]] = [[] for _ in families]
        least = float(self.reach.min()) / self.margin  # with fewer units the one that is appended outweighs them
        n, certain = max(_LEAST_UNITS, math.ceil(least)), np.zeros(self.sums.shape[1], dtype=bool)
        while n <= _GROWTH * MOST_UNITS:  # or until all contrasts have the power
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


Weights = Mapping[Any, float]  # variant_id to its weight; they add up to zero
ANSWER_COLUMNS = ("n", "n_failed", "difference", "margin", "p_value", "p_corrected", "is_not_worse", "reason")
BEST_COLUMNS = ("variant_id", "metric", "against", *ANSWER_COLUMNS)


@dataclass(frozen=True, slots=True)
class NotWorse:
    """The one-sided p-value of "not worse by more than the margin" of one contrast, or why there is none."""

    n: int
    n_failed: int  # questions on which a variant of the contrast failed
    difference: float | None  # in the direction of the scores; failures at the worst (weight > 0) or best value
    margin: float
    p_value: float | None  # see `p_not_worse`
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MarginSample:
    """The scores of one metric, (questions, variants), with failures at the worst and the best value; else NaN."""

    columns: dict[Any, int]
    worst: Floats
    best: Floats
    failed: npt.NDArray[np.bool_]  # in any repeat
    scored: npt.NDArray[np.bool_]
    clusters: list[Hashable] | None
    scale: summaries.Scale
    margin: float

    def answers(self, contrasts: Mapping[Any, Weights]) -> dict[Any, NotWorse]:
        """Return for each contrast whether its weighted sum is not below minus the margin on average."""
        found: dict[Any, NotWorse] = {}
        alike: dict[tuple[bytes, float], dict[Any, Units]] = {}  # on units of the same sizes: tested at once
        for key, weights in contrasts.items():
            observed = self.observed(weights)
            if isinstance(observed, str):
                found[key] = NotWorse(0, 0, None, self.margin, None, observed)
                continue
            column, reach, n_failed = observed
            n, why = column.n, ""
            mean = self.scale.sign * column.mean if n else None
            if len(column.sums) >= 2:
                alike.setdefault((column.counts.tobytes(), reach), {})[key] = column
            else:
                what = f"{n} questions in one cluster" if n > 1 else "one question" if n else "no question"
                why = f"{what} cannot show that a loss is small"
            found[key] = NotWorse(n, n_failed, mean, self.margin, None, why)
        for (_, reach), columns in alike.items():
            sums, counts = zip(*((column.sums, column.counts) for column in columns.values()), strict=True)
            p_values = p_not_worse(np.stack(sums, axis=1), counts[0], self.margin, reach).tolist()
            found |= {key: replace(found[key], p_value=p) for key, p in zip(columns, p_values, strict=True)}
        return found

    def observed(self, weights: Weights) -> tuple[Units, float, int] | str:
        """Return the differences, how large one can be, and how many questions failed; or why nothing can be tested."""
        if absent := [str(variant) for variant, weight in weights.items() if weight and variant not in self.columns]:
            return f"{', '.join(absent)} has no score"
        if self.scale.width is None:
            return "the metric has no worst or no best value, so nobody can say how large a loss was missed"
        ours = {self.columns[variant]: weight for variant, weight in weights.items() if weight}
        values = sum(weight * (self.worst if weight > 0 else self.best)[:, at] for at, weight in ours.items())
        differences = np.asarray(values, dtype=np.float64) * self.scale.sign
        judged = np.isfinite(differences)
        groups = None if self.clusters is None else [self.clusters[row] for row in np.flatnonzero(judged)]
        n_failed = int(self.failed[:, list(ours)][judged].any(axis=1).sum())
        reach = sum(weight for weight in ours.values() if weight > 0) * self.scale.width
        return units(differences[judged], groups), reach, n_failed


def margin_samples(
    scores: pd.DataFrame,
    margins: Mapping[Any, float],
    scales: Mapping[Any, summaries.Scale] | None,
    clusters: summaries.Clusters | None,
) -> dict[Any, MarginSample]:
    """Return the scores of each metric that has a margin, in the order of the margins."""
    questions, ranges = summaries.per_question(scores, list(margins)), summaries.scales_of(scores, scales)
    found: dict[Any, MarginSample] = {}
    for metric, margin in margins.items():
        if metric not in ranges:
            continue
        scale = ranges[metric]
        if not margin > 0 or (scale.width is not None and margin > scale.width):
            most = "" if scale.width is None else f" and at most {plain(scale.width)}, the metric's range"
            raise ConfigError(
                f"The margin of {metric} is {margin}; it is the largest mean loss that you would accept, above 0{most}."
            )
        rows = questions[questions["metric"] == metric]
        ends = {name: summaries.with_failures_at(rows, getattr(scale, name)) for name in ("worst", "best")}
        wide = rows.assign(**ends).pivot(index="question_id", columns="variant_id", values=["worst", "best", "lost"])
        worst, best, lost = (wide[name].to_numpy(dtype=np.float64) for name in ("worst", "best", "lost"))
        labels = None if clusters is None else summaries.cluster_labels(wide.index, clusters)
        places = {variant: place for place, variant in enumerate(wide["lost"].columns)}
        found[metric] = MarginSample(places, worst, best, lost > 0, lost < 1, labels, scale, margin)
    return found


def not_worse(
    scores: pd.DataFrame,
    contrasts: Mapping[Any, Weights],
    margins: Mapping[Any, float],
    *,
    clusters: summaries.Clusters | None = None,
    scales: Mapping[Any, summaries.Scale] | None = None,
) -> pd.DataFrame:
    """Tell for each contrast and metric with a margin whether its mean is not worse by more than the margin.

    Columns:
        n: questions that all variants with a weight have a score of, or failed on
        n_failed, difference, margin, p_value, reason: see `NotWorse`, over these questions
        p_corrected: Hommel's over the contrasts, within the metric
        is_not_worse: whether p_corrected is below 0.05

    Args:
        contrasts: key to weights of variants that add up to zero, positive for what would be taken: a main effect of
            a grid, or a variant against another.
        margins: metric to the largest mean loss that would be accepted; a metric without scores is left out.
    """
    rows: list[tuple[Any, ...]] = []
    for metric, sample in margin_samples(scores, margins, scales, clusters).items():
        found = sample.answers(contrasts)
        rows += [(key, metric, *rest) for key, rest in zip(found, _corrected(list(found.values())), strict=True)]
    return summaries.frame(rows, ("contrast", "metric", *ANSWER_COLUMNS))


def questions_needed(
    scores: pd.DataFrame,
    contrasts: Mapping[Any, Weights],
    metric: Any,
    margin: float,
    n_tests: int,
    *,
    clusters: summaries.Clusters | None = None,
    scales: Mapping[Any, summaries.Scale] | None = None,
) -> dict[Any, int | None]:
    """Return for each contrast how many questions, or clusters, would show it with power 0.8 if nothing differed.

    None where more than 20,000, or where nothing can be tested. `n_tests` is the size of the family.
    """
    sample = margin_samples(scores, {metric: margin}, scales, clusters).get(metric)
    if sample is None:
        return {}
    found: dict[Any, int | None] = {}
    for key, weights in contrasts.items():
        observed, found[key] = sample.observed(weights), None
        if not isinstance(observed, str) and len(observed[0].sums) >= 2:
            found[key] = questions_for_margin(observed[0], margin, observed[1], n_tests)
    return found


def not_worse_than_best(
    scores: pd.DataFrame,
    variants: Sequence[Any],
    margins: Mapping[Any, float],
    *,
    clusters: summaries.Clusters | None = None,
    scales: Mapping[Any, summaries.Scale] | None = None,
) -> pd.DataFrame:
    """Tell for each variant and metric with a margin whether it is not worse than the best by more than the margin.

    Which variant is the best is not known, so a variant must be shown to be not worse than each of the others: the
    p-value is the largest of these (intersection-union, Berger 1982, "Multiparameter Hypothesis Testing and Acceptance
    Sampling"), without a correction for their number; those of the candidates are corrected by Hommel's procedure
    within the metric. Hsu (1984), "Constrained Simultaneous Confidence Intervals for Multiple Comparisons with the
    Best", asks the same.

    Columns: as `not_worse`, with `variant_id`, and `against`, the variant that it is least clearly not worse than, of
    which the numbers are. A variant without any score is no rival.
    """
    rows: list[tuple[Any, ...]] = []
    for metric, sample in margin_samples(scores, margins, scales, clusters).items():
        against, answers = list[Any](), list[NotWorse]()
        scored = [one for one in variants if one in sample.columns and sample.scored[:, sample.columns[one]].any()]
        for variant in variants:
            rivals = [other for other in scored if other != variant]
            others = sample.answers({rival: {variant: 1.0, rival: -1.0} for rival in rivals})
            # The one that shows least; nothing is shown where there is no p-value.
            worst = max(others, key=lambda other: 2.0 if (p := others[other].p_value) is None else p, default=None)
            against.append(worst)
            alone = NotWorse(0, 0, None, sample.margin, None, "there is no other variant to compare it with")
            answers.append(alone if worst is None else others[worst])
        corrected = _corrected(answers)
        rows += [(v, metric, a, *rest) for v, a, rest in zip(variants, against, corrected, strict=True)]
    return summaries.frame(rows, BEST_COLUMNS)


def _corrected(found: Sequence[NotWorse]) -> list[tuple[Any, ...]]:
    """Return the values of ANSWER_COLUMNS of one family."""
    corrected = hommel([one.p_value for one in found])
    return [
        (one.n, one.n_failed, one.difference, one.margin, one.p_value, p, p is not None and p < ALPHA, one.reason)
        for one, p in zip(found, corrected, strict=True)
    ]
