"""Hypotheses about scores, tested in families: primary and secondary, each corrected for its size.

A hypothesis is that a weighted sum of some variants' scores is zero on average over the questions. Each comparison is
tested once and has one answer, wherever it is shown. Comparisons in which so few units differ that no test can be
significant leave their family: that depends on the sizes of the differences alone and not on their signs, so the
others keep their level.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from rag_lab.statistics import summaries
from rag_lab.statistics.intervals import TIE, Floats, PairedDifference, paired_differences
from rag_lab.statistics.noise_components import NoiseComponents, noise_floor
from rag_lab.statistics.randomization import ALPHA, Correction, check_correction, corrected, smallest_n, step_down
from rag_lab.statistics.verdict import Answer, Family, FamilyName, WithFailures

STRICT: Mapping[FamilyName, float] = {"primary": 0.04, "secondary": 0.01}


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """That a weighted sum of scores of a metric is zero on average over questions; it may be false.

    A variant with weight 0 adds nothing, but a question counts only where it has a score: so all effects of a design
    are about the same questions.
    """

    metric: Any
    weights: tuple[tuple[Any, float], ...]  # variant and weight
    questions: frozenset[Any] | None = None  # None for all
    is_primary: bool = False  # whether the experiment was made to test it, declared before it ran

    @classmethod
    def of_pair(cls, metric: Any, variant: Any, against: Any, is_primary: bool = False) -> "Hypothesis":
        """Return that `variant` scores like `against`."""
        return cls(metric, ((variant, 1.0), (against, -1.0)), is_primary=is_primary)

    @property
    def unsigned(self) -> tuple[tuple[Any, float], ...]:
        """The weights that count, sorted, the first of them positive: a - b and b - a are one comparison."""
        weighed = sorted(((variant, weight) for variant, weight in self.weights if weight), key=lambda one: str(one[0]))
        sign = 1.0 if not weighed or weighed[0][1] > 0 else -1.0
        return tuple((variant, sign * weight) for variant, weight in weighed)


@dataclass(frozen=True, slots=True)
class Sample:
    """The weighted sums that a hypothesis is about, one a question."""

    questions: tuple[Any, ...]
    values: Floats  # where every variant has a score, (n,) in the order of `questions`
    asked: tuple[Any, ...]
    filled: Floats  # of all asked, with failures at the worst value; empty where the metric has no worst
    n_failed: int  # questions in which something failed that counts
    key: Hashable  # the same for two hypotheses that are one comparison of the same questions
    scale: summaries.Scale


class ScoreTable:
    """The scores of one metric as questions x variants, from the rows of `per_question`; sorted by name."""

    def __init__(self, rows: pd.DataFrame, scale: summaries.Scale = summaries.SHARE) -> None:
        order = sorted(rows["question_id"].unique(), key=str)
        self._row = {question: place for place, question in enumerate(order)}
        self.questions = np.array(order, dtype=object)
        self._column = {variant: place for place, variant in enumerate(sorted(rows["variant_id"].unique(), key=str))}
        where = rows["question_id"].map(self._row).to_numpy(), rows["variant_id"].map(self._column).to_numpy()
        self.mean = self._spread(rows["mean"], where)
        self.lost = self._spread(rows["lost"], where)
        self.scale = scale
        worst = scale.worst
        self.filled = None if worst is None else self._spread(summaries.with_failures_at(rows, worst), where)

    def _spread(self, column: "pd.Series[float]", where: tuple[Any, Any]) -> Floats:
        table = np.full((len(self._row), len(self._column)), np.nan)
        table[where] = column.to_numpy(dtype=float)
        return table

    def sample(self, hypothesis: Hypothesis) -> Sample:
        """Return what a hypothesis is about; without any question where a variant has no scores at all."""
        variants = sorted(hypothesis.weights, key=lambda one: str(one[0]))
        if any(variant not in self._column for variant, _ in variants):
            nothing = np.zeros(0)
            return Sample((), nothing, (), nothing, 0, (hypothesis.metric, hypothesis.unsigned, b""), self.scale)
        columns = np.array([self._column[name] for name, _ in variants], dtype=np.int64)
        weights = np.array([weight for _, weight in variants])
        among = np.arange(len(self._row))
        if hypothesis.questions is not None:
            among = np.array(sorted(self._row[one] for one in hypothesis.questions if one in self._row), dtype=np.int64)
        scored = among[~np.isnan(self.mean[np.ix_(among, columns)]).any(axis=1)]
        asked = among[~np.isnan(self.lost[np.ix_(among, columns)]).any(axis=1)]
        n_failed = int((self.lost[np.ix_(asked, columns[weights != 0])] > 0).any(axis=1).sum())
        filled = np.zeros(0) if self.filled is None else self.filled[np.ix_(asked, columns)] @ weights
        key = (hypothesis.metric, hypothesis.unsigned, scored.tobytes())
        values = self.mean[np.ix_(scored, columns)] @ weights
        values, filled = (np.where(np.abs(sums) <= TIE, 0.0, sums) for sums in (values, filled))
        return Sample(
            tuple(self.questions[scored]), values, tuple(self.questions[asked]), filled, n_failed, key, self.scale
        )


@dataclass(frozen=True)
class Options:
    """How hypotheses are tested; no difference below the floor of `noise`, by metric, is called one."""

    correction: Correction = "max_t"
    strict: bool = False  # both families together at 5%
    clusters: summaries.Clusters | None = None
    noise: Mapping[Any, NoiseComponents] | None = None
    scales: Mapping[Any, summaries.Scale] | None = None


def answers(
    scores: pd.DataFrame, hypotheses: Sequence[Hypothesis], options: Options | None = None
) -> dict[Hypothesis, Answer]:
    """Test all hypotheses about a table of scores (as for `summary`); each gets its answer.

    Two that are one comparison, of the same variants on the same questions, share it; it is primary where either is.
    """
    options = options or Options()
    check_correction(options.correction)
    compared = differences(scores, hypotheses, options)
    samples = {one: sample for one, (sample, _) in compared.items()}
    found: dict[Hypothesis, Answer] = {}
    tested: dict[Hashable, _Tested] = {}
    primary = {sample.key for one, sample in samples.items() if one.is_primary}
    for name in get_args(FamilyName):
        members = {one.key: one for one in samples.values() if (one.key in primary) is (name == "primary")}
        tested |= _tested(members, name, options)
    for one, (sample, difference) in compared.items():
        test, failures = tested[sample.key], None
        noise = (options.noise or {}).get(one.metric)
        squares = sum(weight**2 for _, weight in one.weights)  # what the noise of single scores is multiplied with
        floor = None if noise is None else noise_floor(noise, difference.n, squares).value
        if sample.n_failed and test.p_corrected is not None:  # it can be significant
            mean = float(sample.filled.mean()) if len(sample.filled) else None
            failures = WithFailures(mean, test.with_failures)
        numbers = (test.p_value, test.p_corrected, test.family, failures)
        found[one] = Answer(difference, *numbers, floor, sample.scale.higher_is_better)
    nothing = Answer(PairedDifference(None, None, None, 0, 0, 0, 0), None, None)
    return {one: found.get(one, nothing) for one in hypotheses}


def differences(
    scores: pd.DataFrame, hypotheses: Sequence[Hypothesis], options: Options
) -> dict[Hypothesis, tuple[Sample, PairedDifference]]:
    """Return what each hypothesis is about, and the interval of its mean; nothing is tested.

    In the order of the hypotheses, each once, without those of metrics that have no scores; the intervals are those of
    `paired_differences`, of clusters where `options` have some.
    """
    scales = summaries.scales_of(scores, options.scales)
    by_metric = summaries.per_question(scores, {one.metric for one in hypotheses}).groupby("metric", sort=False)
    tables = {metric: ScoreTable(rows, scales.get(metric, summaries.SHARE)) for metric, rows in by_metric}
    samples = {one: tables[one.metric].sample(one) for one in dict.fromkeys(hypotheses) if one.metric in tables}
    groups = None
    if options.clusters is not None:
        groups = [summaries.cluster_labels(one.questions, options.clusters) for one in samples.values()]
    pairs = [(one.values, np.zeros(len(one.values))) for one in samples.values()]
    sizes = [sum(weight for _, weight in one.weights if weight > 0) for one in samples]
    widths = [one.scale.width for one in samples.values()]
    reach = [None if width is None else width * size for width, size in zip(widths, sizes, strict=True)]
    found = zip(samples.values(), paired_differences(pairs, clusters=groups, reach=reach), strict=True)
    return dict(zip(samples, found, strict=True))


class _Tested(NamedTuple):
    """What was found of a comparison, or of its mirror image: numbers that have no sign."""

    p_value: float | None
    p_corrected: float | None
    family: Family
    with_failures: float | None = None


def lone_answer(values: Sequence[float]) -> Answer:
    """Return whether differences from -1 to 1 are zero on average: one comparison, a family of its own."""
    column = np.asarray(values, dtype=np.float64)
    difference = paired_differences([(column, np.zeros(len(column)))], reach=[1.0])[0]
    if not len(column):
        return Answer(difference, None, None)
    test = step_down(column[:, None])
    p_value, is_able = float(test.alone[0]), difference.n_differing >= smallest_n(ALPHA)
    return Answer(difference, p_value, p_value if is_able else None, Family(critical=test.critical(ALPHA)))


def _tested(members: Mapping[Hashable, Sample], name: FamilyName, options: Options) -> dict[Hashable, _Tested]:
    alpha = STRICT[name] if options.strict else ALPHA
    found: dict[Hashable, _Tested] = {}
    ids = (one for sample in members.values() for one in (*sample.questions, *sample.asked))
    unit = summaries.unit_places(ids, options.clusters)
    sums = {key: _sums(unit, one.questions, one.values) for key, one in members.items()}
    able = [key for key, column in sums.items() if np.count_nonzero(column) >= smallest_n(alpha)]
    test = step_down(np.stack([sums[key] for key in able], axis=1)) if able else None
    family = Family(name, alpha, len(able), test.critical(alpha) if test else None)
    p_corrected = corrected(test.alone.tolist(), test.adjusted.tolist(), options.correction) if test else []
    failed = {key for key in able if members[key].n_failed}
    failures: dict[Hashable, float | None] = {}  # by p-values with failures at the worst value
    if failed:
        filled = {key for key in failed if len(members[key].filled)}
        columns = [_sums(unit, members[k].asked, members[k].filled) if k in filled else sums[k] for k in able]
        worst = step_down(np.stack(columns, axis=1))
        p_values = corrected(worst.alone.tolist(), worst.adjusted.tolist(), options.correction)
        failures = {key: p if len(members[key].filled) else None for key, p in zip(able, p_values, strict=True)}
    place = {key: index for index, key in enumerate(able)}
    for key, one in members.items():
        if key in place and test is not None:
            alone = float(test.alone[place[key]])
            found[key] = _Tested(alone, p_corrected[place[key]], family, failures.get(key) if key in failed else None)
        else:
            found[key] = _Tested(
                float(step_down(sums[key][:, None]).alone[0]) if len(one.values) else None, None, family
            )
    return found


def _sums(place: Mapping[Any, int], questions: Sequence[Any], values: Floats) -> Floats:
    """Return the sum of the values of each unit, a question or a cluster, in the order of `place`, (g,)."""
    n, places = len(set(place.values())), np.array([place[one] for one in questions], dtype=np.int64)
    summed = np.bincount(places, values, minlength=n) if len(places) else np.zeros(n)
    # A cluster whose wins and losses cancel out differs by rounding alone.
    return np.where(np.abs(summed) <= 1e-9, 0.0, summed)


COMPARISON_COLUMNS = (
    *("variant_id", "metric", "n", "difference", "low", "high", "p_value", "p_corrected"),
    *("wins", "ties", "losses", "verdict", "against", "effect_size", "doubt", "family", "smallest_difference"),
)
Pairs = Literal["baseline", "all"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A variant and what it is compared with, in a metric; `withheld` says why it is not, where it is not."""

    variant_id: Any
    metric: Any
    against: Any
    is_primary: bool = False
    withheld: str = ""

    @property
    def hypothesis(self) -> Hypothesis:
        """That both score alike."""
        return Hypothesis.of_pair(self.metric, self.variant_id, self.against, self.is_primary)


def pairs_among(variants: Sequence[Any], pairs: Pairs) -> list[tuple[Any, Any]]:
    """Return (variant, against): every other variant against the first, or each against those before it."""
    if pairs == "baseline":
        return [(variant, variants[0]) for variant in variants[1:]]
    return [(later, earlier) for earlier, later in combinations(variants, 2)]


def score_pairs(scores: pd.DataFrame, pairs: Sequence[tuple[Any, Any]], primary: Any = None) -> list[Pair]:
    """Return each pair in each metric that its variant has rows for; `primary` decides, the first metric where None."""
    metrics = scores["metric"].unique().tolist()
    first = metrics[0] if primary is None and metrics else primary
    there = set(scores[["variant_id", "metric"]].drop_duplicates().itertuples(index=False, name=None))
    return [
        Pair(variant, metric, against, metric == first)
        for variant, against in pairs
        for metric in metrics
        if (variant, metric) in there
    ]


def differences_table(pairs: Sequence[Pair], found: Mapping[Hypothesis, Answer]) -> pd.DataFrame:
    """Return one row a pair, in order: what its `Answer` says.

    Columns:
        n: questions that both the variant and `against` have a score for; all that follows is over these
        difference, low, high: mean of variant minus `against`, and its interval
        wins, ties, losses: questions on which the variant is better, equal, worse
        verdict: also why nothing was compared
        family: `primary` or `secondary`
    """
    rows: list[tuple[Any, ...]] = []
    for pair in pairs:
        key = (pair.variant_id, pair.metric)
        if pair.withheld:
            family = "primary" if pair.is_primary else "secondary"
            nothing = (0, None, None, None, None, None, 0, 0, 0)
            rows.append((*key, *nothing, pair.withheld, pair.against, None, "", family, None))
            continue
        answer = found[pair.hypothesis]
        d = answer.difference
        wins, losses = (d.wins, d.losses) if answer.higher_is_better else (d.losses, d.wins)
        numbers = (d.n, d.mean, d.low, d.high, answer.p_value, answer.p_corrected, wins, d.ties, losses)
        words = (answer.verdict, pair.against, d.effect_size, answer.doubt, answer.family.name)
        rows.append((*key, *numbers, *words, answer.smallest_difference))
    return summaries.frame(rows, COMPARISON_COLUMNS)
