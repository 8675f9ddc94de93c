"""Does routing pay: HyDE for no question, for all, or for those of some classes; and a rule that is learned from data.

The table has one row a question: `question_id`, the scores of the arms `none`, `always` and, where it was run,
`classified` (null where not scored), `predicted` (the class the pipeline gave, null where it gave none) and `labelled`
(the dataset's class, or null). A question counts where every arm of the table has scored it. A column `cluster`, where
there is one, names for each question the cluster with which it is resampled and flipped.

A rule, a CLASS2HYDE, is learned on some questions, and its gain is that on the others; whether classes matter is tested
by dealing them out at random.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import yaml

from rag_lab._kit.wording import signed, with_interval
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.records import QUERY_CLASSES, Trace
from rag_lab.statistics.families import Hypothesis
from rag_lab.statistics.intervals import Floats, PairedDifference, paired_differences
from rag_lab.statistics.summaries import SHARE, Clusters, Scale, cluster_labels, frame, per_question
from rag_lab.statistics.verdict import Answer

ARMS = ("none", "always", "classified")
ALL = "all"
CLASS_COLUMNS = (
    *("query_class", "arm", "against", "n", "mean", "mean_against", "difference", "low", "high"),
    *("p_value", "p_corrected", "verdict", "doubt"),
)
MISTAKE_COLUMNS = ("labelled", "predicted", "n", "n_routed_otherwise", "cost", "low", "high")


def routing_table(
    scores: pd.DataFrame,
    metric: str,
    arms: Mapping[str, Any],
    traces: Sequence[Trace] = (),
    clusters: Clusters | None = None,
) -> pd.DataFrame:
    """Return the table of this module, from scores and the traces of the classified arm.

    `arms` maps arm to variant_id; of traces of several repeats, the first has the class.
    """
    _check_arms(arms)
    questions = per_question(scores, [metric])
    ours = questions[questions["variant_id"].isin(list(arms.values()))]
    wide = ours.pivot(index="question_id", columns="variant_id", values="mean").reindex(columns=list(arms.values()))
    table = wide.set_axis(list(arms), axis=1).reset_index()
    first = {trace.question.question_id: trace for trace in reversed(traces)}
    found = [first.get(name) for name in table["question_id"]]
    columns: dict[str, list[Any]] = {
        "predicted": [trace and trace.query_class for trace in found],
        "labelled": [trace and trace.question.query_class for trace in found],
    } | ({} if clusters is None else {"cluster": cluster_labels(table["question_id"], clusters)})
    return table.assign(**{name: pd.Series(one, index=table.index, dtype=object) for name, one in columns.items()})


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return the questions that every arm of the table has scored, sorted by question."""
    _check_arms(table.columns)
    arms = [arm for arm in ARMS if arm in table]
    rows = table.assign(**{arm: pd.to_numeric(table[arm]).astype(float) for arm in arms}).dropna(subset=arms)
    if "question_id" in rows:
        rows = rows.sort_values("question_id", kind="stable")
    return rows.assign(**{name: [_name(value) for value in rows[name]] for name in ("predicted", "labelled")})


def cluster_column(parts: Sequence[pd.DataFrame]) -> list[list[Hashable]] | None:
    """Return the clusters of the questions of each part; None where questions are independent."""
    return [list(part["cluster"]) for part in parts] if all("cluster" in part for part in parts) else None


def group_numbers(rows: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Return the number of each question's cluster, (n,); without clusters, each question is its own."""
    return pd.factorize(rows["cluster"])[0] if "cluster" in rows else np.arange(len(rows))


@dataclass(frozen=True, slots=True)
class ArmPair:
    """Two arms compared on the questions of a class, or on all."""

    query_class: str
    arm: str
    against: str
    hypothesis: Hypothesis


def arm_pairs(table: pd.DataFrame, column: str, metric: Any, arms: Mapping[str, Any]) -> list[ArmPair]:
    """Return the pairs of arms on all questions, then on those of each class in `column` that every arm has scored.

    Questions without a class count in `all` alone; `arms` maps arm to variant_id, in the order of `ARMS`.
    """
    rows = complete(table)
    pairs = [(later, earlier) for earlier, later in combinations([arm for arm in ARMS if arm in arms], 2)]
    found = [ArmPair(ALL, arm, base, Hypothesis.of_pair(metric, arms[arm], arms[base])) for arm, base in pairs]
    for name in _classes(rows[column]):
        questions = frozenset(rows.loc[rows[column] == name, "question_id"])
        for arm, base in pairs:
            weights = tuple((arms[one], float((one == arm) - (one == base))) for one in arms)
            found.append(ArmPair(name, arm, base, Hypothesis(metric, weights, questions)))
    return found


def by_class(
    table: pd.DataFrame, column: str, pairs: Sequence[ArmPair], found: Mapping[Hypothesis, Answer]
) -> pd.DataFrame:
    """Return one row an arm pair: `query_class`, `arm`, `against`, `n`, the means of both, and what was found.

    `difference` with its interval, p-values, `verdict` and `doubt` are as in `families.differences_table`: a pair over
    all questions has the very answer that it has there. `column` is that of `arm_pairs`.
    """
    rows = complete(table)
    lines = []
    for pair in pairs:
        answer, arms = found[pair.hypothesis], (pair.arm, pair.against)
        both = table[list(arms)].apply(pd.to_numeric).astype(float).dropna()
        part = both if pair.query_class == ALL else rows[rows[column] == pair.query_class]
        d = answer.difference
        means = [float(part[arm].mean()) if len(part) else None for arm in arms]
        tested = (answer.p_value, answer.p_corrected, answer.verdict, answer.doubt)
        lines.append((pair.query_class, *arms, d.n, *means, d.mean, d.low, d.high, *tested))
    return frame(lines, CLASS_COLUMNS)


def confusion(table: pd.DataFrame) -> pd.DataFrame:
    """Return the counts of questions by labelled class (rows) and predicted class (columns), scored or not.

    A question that got no class stands in the column `none given`.
    """
    rows = table.assign(**{name: [_name(value) for value in table[name]] for name in ("predicted", "labelled")})
    rows = rows[rows["labelled"] != ""].assign(predicted=lambda part: part["predicted"].replace("", "none given"))
    names = list(dict.fromkeys([*_classes(rows["labelled"]), *_classes(rows["predicted"])]))
    counts = pd.crosstab(rows["labelled"], rows["predicted"])
    labels = [name for name in names if name != "none given"]
    return counts.reindex(index=labels, columns=names, fill_value=0).rename_axis(index="labelled", columns="predicted")


def mistake_cost(
    table: pd.DataFrame, class_to_hyde: Mapping[str, bool], seed: int = 0, scale: Scale = SHARE
) -> pd.DataFrame:
    """Return what the classifier's mistakes cost: a question's score in its true class's arm minus in the one it got.

    One row `all` over every labelled question (right ones cost nothing), then one a (labelled, predicted) mistake.

    Columns: `labelled`, `predicted`, `n`, `n_routed_otherwise` (the mistake changed the arm), `cost` (mean over the n;
    positive where mistakes hurt) with `low` and `high`. A question without a predicted class gets no HyDE.
    """
    rows = complete(table)
    rows = rows[rows["labelled"] != ""]
    for name, column in (("right", "labelled"), ("routed", "predicted")):
        on = pd.Series([class_to_hyde.get(one, False) for one in rows[column]], index=rows.index, dtype=bool)
        rows = rows.assign(**{name: scale.sign * rows["always"].where(on, rows["none"])})
    wrong = rows[rows["labelled"] != rows["predicted"]]
    parts: list[tuple[Any, pd.DataFrame]] = [((ALL, ALL), rows), *wrong.groupby(["labelled", "predicted"])]
    pairs = [(list(part["right"]), list(part["routed"])) for _, part in parts]
    clusters, reach = cluster_column([part for _, part in parts]), [scale.width] * len(pairs)
    found = paired_differences(pairs, seed=seed, clusters=clusters, reach=reach)
    lines: list[tuple[Any, ...]] = []
    for ((labelled, predicted), part), d in zip(parts, found, strict=True):
        ways_of = zip(part["labelled"], part["predicted"], strict=True)
        moved = sum(class_to_hyde.get(a, False) != class_to_hyde.get(b, False) for a, b in ways_of)
        lines.append((labelled, predicted or "none given", d.n, moved, d.mean, d.low, d.high))
    return frame(lines, MISTAKE_COLUMNS)


def _classes(column: "pd.Series[str]") -> list[str]:
    """Return the classes that occur, the known ones in their usual order."""
    seen = [name for name in dict.fromkeys(column) if name]
    return [*(name for name in QUERY_CLASSES if name in seen), *sorted(set(seen) - set(QUERY_CLASSES))]


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _check_arms(arms: Any) -> None:
    missing = [arm for arm in ARMS[:2] if arm not in arms]
    if missing:
        raise ConfigError(f"The HyDE study needs the arms none and always; missing: {', '.join(missing)}.")


MIN_QUESTIONS = 5  # of a class, for HyDE to be on in it
_NOTHING = 1e-12  # a gain up to this is rounding

Numbers = npt.NDArray[np.int64]
Rules = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Trial:
    """What rules are learned from and tried on: (n,) arrays, and how."""

    gain: Floats  # what HyDE adds to the score of each question, positive where that is better
    classes: Numbers  # of each question, from 1; 0 is no class, for which HyDE is off
    groups: Numbers  # the cluster of each question, from 0; it is in one fold as a whole
    folds: int  # at least 2
    repetitions: int  # with other folds each


def cross_validated(trial: Trial, classes: Numbers, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return in which share of the repetitions each question is given HyDE, (n,), by rules it had no part in.

    By the rule for its class, if the questions had `classes`, and by the better of HyDE for all and for none.
    """
    folds, tries = _folds(classes, trial, random), np.arange(trial.repetitions)[:, None]  # (repetitions, n)
    counts, sums = _per_fold(folds, classes), _per_fold(folds, classes, trial.gain)
    counts, sums = counts.sum(axis=1, keepdims=True) - counts, sums.sum(axis=1, keepdims=True) - sums  # of the others
    by_class = _rules(counts, sums)[tries, folds, classes]
    for_all = (sums.sum(axis=2) > _NOTHING * counts.sum(axis=2))[tries, folds]
    return by_class.sum(axis=0) / trial.repetitions, for_all.sum(axis=0) / trial.repetitions


def p_value(trial: Trial, seed: int, n_permutations: int = 499) -> float:
    """Return how often routing gains as much over the better arm where the classes are dealt out at random.

    One-sided: the null hypothesis is that the classes say nothing about what HyDE adds. The whole procedure, folds and
    learning included, is repeated with classes permuted between questions, or between clusters with the questions in
    them. A test of the cross-validated gains themselves would not do: they share their rules, and it found a gain in
    10% to 14% of simulations without one.
    """
    random = np.random.default_rng(seed)
    dealt = (dealt_out(trial.classes, trial.groups, random) for _ in range(n_permutations))
    tried = (cross_validated(trial, classes, random) for classes in chain([trial.classes], dealt))
    observed, *gains = (float(np.mean(trial.gain * (by_class - for_all))) for by_class, for_all in tried)
    return (1 + sum(gain >= observed - _NOTHING for gain in gains)) / (1 + n_permutations)


def dealt_out(classes: Numbers, groups: Numbers, random: np.random.Generator) -> Numbers:
    """Return the classes dealt out anew: each cluster gets those of another, repeated or cut to its size."""
    sizes = np.bincount(groups)
    if len(sizes) == len(classes):
        return random.permutation(classes)
    members = np.split(np.argsort(groups, kind="stable"), sizes.cumsum()[:-1])
    dealt = np.empty_like(classes)
    for own, other in zip(members, random.permutation(len(members)), strict=True):
        dealt[own] = np.resize(classes[members[other]], len(own))
    return dealt


def _rules(counts: Floats, sums: Floats) -> Rules:
    """Return for which classes, the last axis, HyDE is on, by the number of questions and the sum of their gains."""
    is_on = (counts >= MIN_QUESTIONS) & (sums > _NOTHING * counts)
    is_on[..., 0] = False
    return is_on


def _folds(classes: Numbers, trial: Trial, random: np.random.Generator) -> Numbers:
    """Return the fold of each question in each repetition, (repetitions, n).

    Every class is spread over the folds as evenly as whole clusters can be: the clusters are dealt out in random order,
    those with the same most frequent class one after the other.
    """
    class_of = _per_fold(trial.groups[None], classes)[0].argmax(axis=1)
    order = np.stack([random.permutation(len(class_of)) for _ in range(trial.repetitions)])
    by_class = np.take_along_axis(order, np.argsort(class_of[order], axis=1, kind="stable"), axis=1)
    fold = np.empty_like(order)
    np.put_along_axis(fold, by_class, np.arange(len(class_of)) % trial.folds, axis=1)
    return fold[:, trial.groups]


def _per_fold(folds: Numbers, classes: Numbers, weights: Floats | None = None) -> Floats:
    """Return how many questions, or the sum of their weights, a fold has of a class, (repetitions, folds, classes)."""
    shape = (len(folds), int(folds.max()) + 1, int(classes.max()) + 1)
    cells = (np.arange(shape[0])[:, None] * shape[1] + folds) * shape[2] + classes
    repeated = None if weights is None else np.tile(weights, shape[0])
    return np.bincount(cells.ravel(), repeated, minlength=np.prod(shape)).astype(np.float64).reshape(shape)


@dataclass(frozen=True)
class LearnedRouting:
    """A rule and what it is worth.

    `gains` are those of rules learned without the question they are tried on: over never using HyDE (`none`), over
    `always`, over the better of these two as known from the same training questions (`best_arm`), and, where it was
    run, over the present rule (`classified`).
    """

    class_to_hyde: dict[str, bool]  # learned on all questions
    reasons: dict[str, str]  # why each class is on or off
    gains: dict[str, PairedDifference]
    n: int
    p_value: float | None  # of the gain over the better arm

    def to_yaml(self, base: PipelineConfig | None = None) -> str:
        """Return a configuration with the rule: the whole of `base` with it, or only the two keys, for a preset."""
        if base is None:
            body = yaml.safe_dump(
                {"query": {"hyde": "classified", "class_to_hyde": self.class_to_hyde}}, sort_keys=False
            )
        else:
            body = base.override({"query.hyde": "classified", "query.class_to_hyde": self.class_to_hyde}).to_yaml()
        return "".join(f"# {line}\n" for line in self.sentences()) + body

    def sentences(self) -> list[str]:
        """Return what was learned and what it gains, in plain words."""
        on = [name for name, hyde in self.class_to_hyde.items() if hyde]
        rule = f"HyDE for {', '.join(on)}" if on else "HyDE for no class"
        lines = [f"Learned from {self.n:,} questions: {rule}."]
        names = {"none": "no HyDE", "always": "HyDE for all", "best_arm": "the better of these two"}
        names["classified"] = "the present rule"
        for arm, gain in self.gains.items():
            text = with_interval(gain.mean, gain.low, gain.high)
            if gain.mean is None:
                text = "no question was scored"
            elif gain.ties == gain.n:
                text = "no question changes"
            elif gain.low is not None and gain.high is not None and gain.low <= 0 <= gain.high:
                text += ", which the data cannot tell from chance"
            lines.append(f"Against {names[arm]}, on questions it was not learned on: {text}.")
        return lines


def learn_class_to_hyde(
    table: pd.DataFrame,
    column: str = "predicted",
    seed: int = 0,
    folds: int = 5,
    repetitions: int = 20,
    scale: Scale = SHARE,
) -> LearnedRouting:
    """Learn for which classes HyDE pays, and estimate the gain by repeated stratified cross-validation.

    A class is on where `always` scores better than `none` on average, over at least 5 questions; ties are off. The gain
    of a question is that of the rules learned on the folds it is not in, averaged over the repetitions; its interval is
    that of a paired difference. A cluster is in one fold as a whole: a rule learned on half of a document
    knows the other. (The rules of the folds resemble each other, which that interval does not hold; with
    few questions take it as the least that the uncertainty can be.)

    Args:
        column: `predicted`, since that class is what the rule will be applied to, or `labelled` for what a classifier
            without mistakes could gain.
        folds: at least 2; fewer where there are fewer questions or clusters.
        scale: of the metric; gains have the sign of its scores, also where less is better.
    """
    rows = complete(table)
    classes = np.array([str(name) for name in rows[column]], dtype=np.str_)
    gain, groups = rows["always"].to_numpy(dtype=float) - rows["none"].to_numpy(dtype=float), group_numbers(rows)
    known = [*QUERY_CLASSES, *sorted({str(name) for name in classes} - {*QUERY_CLASSES, ""})]
    numbers = np.array([known.index(name) + 1 if name else 0 for name in classes], dtype=np.int64)
    trial = Trial(scale.sign * gain, numbers, groups, min(folds, len(set(groups.tolist()))), repetitions)
    on = np.zeros(0, dtype=np.bool_)
    if len(trial.gain):  # what all questions together say
        alone = np.zeros_like(trial.classes)[None]
        on = _rules(_per_fold(alone, trial.classes), _per_fold(alone, trial.classes, trial.gain)).ravel()
    # A class that no question has is off.
    class_to_hyde = {name: place < len(on) and bool(on[place]) for place, name in enumerate(known, start=1)}
    by_class, for_all = np.zeros(len(rows)), np.zeros(len(rows))
    if trial.folds >= 2:
        by_class, for_all = cross_validated(trial, trial.classes, np.random.default_rng(seed))
    # The score of a question is its mean over the rules it was not part of.
    none = rows["none"].to_numpy(dtype=float)
    arms = {"none": none, "always": none + gain, "best_arm": none + gain * for_all}
    if ARMS[2] in rows:
        arms[ARMS[2]] = rows[ARMS[2]].to_numpy(dtype=float)
    pairs = [(none + gain * by_class, scores) for scores in arms.values()]
    clusters, reach = cluster_column([rows] * len(arms)), [scale.width] * len(arms)
    gains = paired_differences(pairs, seed=seed, clusters=clusters, reach=reach)
    return LearnedRouting(
        class_to_hyde=class_to_hyde,
        reasons={name: _reason(gain[classes == name], on) for name, on in class_to_hyde.items()},
        gains=dict(zip(arms, gains, strict=True)),
        p_value=p_value(trial, seed) if trial.folds >= 2 else None,
        n=len(rows),
    )


def _reason(gain: Floats, is_on: bool) -> str:
    if len(gain) < MIN_QUESTIONS:
        return f"off: {len(gain)} questions, fewer than {MIN_QUESTIONS}"
    mean = float(gain.mean())
    if abs(mean) <= 1e-12:
        return f"off: HyDE changes nothing on average over {len(gain)} questions"
    return f"{'on' if is_on else 'off'}: HyDE changes the mean by {signed(mean)} over {len(gain)} questions"
