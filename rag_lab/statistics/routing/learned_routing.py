"""A CLASS2HYDE learned from data, with its gain measured on questions that it was not learned on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import yaml

from rag_lab._kit.numbers import signed, with_interval
from rag_lab.config import PipelineConfig
from rag_lab.records import QUERY_CLASSES
from rag_lab.statistics.intervals import PairedDifference, paired_differences
from rag_lab.statistics.routing.class_rules import MIN_QUESTIONS, Trial, cross_validated, learned, p_value
from rag_lab.statistics.routing.routing_table import ARMS, cluster_column, complete, group_numbers
from rag_lab.statistics.scales import SHARE, Scale

FOLDS = 5
REPETITIONS = 20

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LearnedRouting:
    """A rule and what it is worth.

    `class_to_hyde` is learned on all questions. `gains` are those of rules learned in the same way without the question
    they are tried on: over never using HyDE (`none`), over `always`, over the better of these two as known from the
    same training questions (`best_arm`), and, where it was run, over the present rule (`classified`). `reasons` says
    for each class why it is on or off. `p_value` is that of the gain over the better arm, see `class_rules.p_value`.
    """

    class_to_hyde: dict[str, bool]
    reasons: dict[str, str]
    gains: dict[str, PairedDifference]
    n: int
    p_value: float | None

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
            lines.append(f"Against {names[arm]}, on questions it was not learned on: {_said(gain)}.")
        return lines


def learn_class_to_hyde(
    table: pd.DataFrame,
    column: str = "predicted",
    seed: int = 0,
    folds: int = FOLDS,
    repetitions: int = REPETITIONS,
    scale: Scale = SHARE,
) -> LearnedRouting:
    """Learn for which classes HyDE pays, and estimate the gain by repeated stratified cross-validation.

    A class is on where `always` scores better than `none` on average, over at least 5 questions; ties are off. The gain
    of a question is that of the rules learned on the folds it is not in, averaged over the repetitions; its interval is
    that of a paired difference. A cluster is in one fold as a whole: a rule learned on half of a document
    knows the other. (The rules of the folds resemble each other, which that interval does not hold; with
    few questions take it as the least that the uncertainty can be.)

    Args:
        table: see `routing`.
        column: `predicted`, since that class is what the rule will be applied to, or `labelled` for what a classifier
            without mistakes could gain.
        seed: of folds and resamples.
        folds: of one repetition, at least 2; fewer where there are fewer questions or clusters.
        repetitions: with other folds each.
        scale: of the metric; gains have the sign of its scores, also where less is better.
    """
    rows = complete(table)
    classes = np.array([str(name) for name in rows[column]], dtype=np.str_)
    gain, groups = (rows["always"] - rows["none"]).to_numpy(dtype=float), group_numbers(rows)
    known = [*QUERY_CLASSES, *sorted(set(classes) - set(QUERY_CLASSES) - {""})]
    numbers = np.array([known.index(name) + 1 if name else 0 for name in classes], dtype=np.int64)
    trial = Trial(scale.sign * gain, numbers, groups, min(folds, len(set(groups.tolist()))), repetitions)
    class_to_hyde = _rule(trial, known)
    return LearnedRouting(
        class_to_hyde=class_to_hyde,
        reasons={name: _reason(gain[classes == name], on) for name, on in class_to_hyde.items()},
        gains=_gains(rows, trial, seed, scale),
        p_value=p_value(trial, seed) if trial.folds >= 2 else None,
        n=len(rows),
    )


def _rule(trial: Trial, known: Sequence[str]) -> dict[str, bool]:
    """Return the rule by the names of the classes; one that no question has is off."""
    on = learned(trial) if len(trial.gain) else np.zeros(0, dtype=np.bool_)
    return {name: number < len(on) and bool(on[number]) for number, name in enumerate(known, start=1)}


def _gains(rows: pd.DataFrame, trial: Trial, seed: int, scale: Scale) -> dict[str, PairedDifference]:
    """Return the gain over each arm; the score of a question is its mean over the rules it was not part of."""
    none = rows["none"].to_numpy(dtype=float)
    gain = rows["always"].to_numpy(dtype=float) - none
    can_learn = trial.folds >= 2
    by_class, for_all = np.zeros(len(rows)), np.zeros(len(rows))
    if can_learn:
        by_class, for_all = cross_validated(trial, trial.classes, np.random.default_rng(seed))
    arms = {"none": none, "always": none + gain, "best_arm": none + gain * for_all}
    if ARMS[2] in rows:
        arms[ARMS[2]] = rows[ARMS[2]].to_numpy(dtype=float)
    pairs = [(none + gain * by_class, scores) for scores in arms.values()]
    clusters, reach = cluster_column([rows] * len(arms)), [scale.width] * len(arms)
    return dict(zip(arms, paired_differences(pairs, seed=seed, clusters=clusters, reach=reach), strict=True))


def _reason(gain: Floats, is_on: bool) -> str:
    if len(gain) < MIN_QUESTIONS:
        return f"off: {len(gain)} questions, fewer than {MIN_QUESTIONS}"
    mean = float(gain.mean())
    if abs(mean) <= 1e-12:
        return f"off: HyDE changes nothing on average over {len(gain)} questions"
    return f"{'on' if is_on else 'off'}: HyDE changes the mean by {signed(mean)} over {len(gain)} questions"


def _said(gain: PairedDifference) -> str:
    if gain.mean is None:
        return "no question was scored"
    if gain.ties == gain.n:
        return "no question changes"
    is_open = gain.low is not None and gain.high is not None and gain.low <= 0 <= gain.high
    certain = ", which the data cannot tell from chance" if is_open else ""
    return with_interval(gain.mean, gain.low, gain.high) + certain
