"""Does routing pay: HyDE for no question, for every question, or for those of some classes.

The table has one row a question: `question_id`, the scores of the arms `none`, `always` and, where it was run,
`classified` (null where not scored), `predicted` (the class the pipeline gave, null where it gave none) and `labelled`
(the dataset's class, or null). A question counts where every arm of the table has scored it. A column `cluster`, where
there is one, names for each question the cluster with which it is resampled and flipped.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab.errors import ConfigError
from rag_lab.records import QUERY_CLASSES, Trace
from rag_lab.statistics.families import Hypothesis
from rag_lab.statistics.intervals import paired_differences
from rag_lab.statistics.per_question import Clusters, cluster_labels, frame, per_question
from rag_lab.statistics.scales import SHARE, Scale
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

    `difference` with its interval, p-values, `verdict` and `doubt` are as in `pairwise.differences_table`: a pair over
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


def _classes(column: pd.Series[str]) -> list[str]:
    """Return the classes that occur, the known ones in their usual order."""
    seen = [name for name in dict.fromkeys(column) if name]
    return [*(name for name in QUERY_CLASSES if name in seen), *sorted(set(seen) - set(QUERY_CLASSES))]


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _check_arms(arms: Any) -> None:
    missing = [arm for arm in ARMS[:2] if arm not in arms]
    if missing:
        raise ConfigError(f"The HyDE study needs the arms none and always; missing: {', '.join(missing)}.")
