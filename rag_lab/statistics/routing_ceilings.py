"""The ceiling of any router: what the better arm of each question, or of each class, chosen afterwards, would gain.

Of two noisy scores the larger is better even where the arms are equal, so a gain that is chosen and scored on the same
scores is no gain yet. With repeats the arm is chosen in one and scored in the others. Without, what chance alone would
show is taken off. For questions that is what two arms show that differ by the same mean, and by chance around it, on
the questions that differ: each difference d counts as half itself and half its mirror image 2m - d. More cannot be told
from single scores, since the gain is (mean |d| - |mean d|) / 2, the same whether the differences last or not. For
classes it is what classes dealt out at random show.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from rag_lab.statistics.intervals import TIE, Floats, paired_differences, units
from rag_lab.statistics.routing import Numbers, cluster_column, complete, dealt_out, group_numbers
from rag_lab.statistics.summaries import SHARE, Clusters, Scale, cluster_labels

N_REFERENCES = 499
_TAILS = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What choosing between `none` and `always` afterwards gains over the better of the two for all.

    `seen` is the gain on the scores it was chosen on and `by_chance` what these would show where there is nothing to
    choose; both are None where repeats told them apart. `gain` is what is left, with its 95% interval. All have the
    sign of the scores: less than zero is a gain where less is better. None where no question was scored in both arms.
    """

    n: int
    best_arm: str
    seen: float | None
    by_chance: float | None
    gain: float | None
    low: float | None
    high: float | None

    @property
    def is_of_repeats(self) -> bool:
        """Whether the arms were chosen in one repeat and scored in the others."""
        return self.seen is None and self.gain is not None


_NOTHING = Ceiling(0, "none", None, None, None, None, None)


def question_ceiling(table: pd.DataFrame, repeated: pd.DataFrame | None = None, scale: Scale = SHARE) -> Ceiling:
    """Return the ceiling of a router that knows each question.

    Where two questions or more are `repeated` (see `repeated_differences`), it is the gain of the arm that is better in
    one repeat, over that which is better for all in it, in the others, averaged over which repeat chooses. Both are
    chosen in it, so that neither is favoured by chance.
    """
    if repeated is not None and len(repeated) > 1:
        d = scale.sign * repeated.drop(columns="cluster", errors="ignore").to_numpy(dtype=float)
        d = np.where(np.abs(d) <= TIE, 0.0, d)
        there = ~np.isnan(d)
        filled, counts = np.where(there, d, 0.0), there.sum(axis=1, keepdims=True)
        others = (filled.sum(axis=1, keepdims=True) - filled) / (counts - 1)
        for_all = filled.sum(axis=0, keepdims=True) > 0
        choice = np.where(filled == 0, for_all, filled > 0).astype(float) - for_all
        gains = np.where(there, choice * others, 0.0).sum(axis=1) / counts[:, 0]
        pair = (scale.sign * gains, np.zeros(len(gains)))
        found = paired_differences([pair], clusters=cluster_column([repeated]), reach=[scale.width])[0]
        arm = "always" if np.nansum(d) > 0 else "none"
        return Ceiling(len(d), arm, None, None, found.mean, found.low, found.high)
    rows = complete(table)
    d = _differences(rows, scale)
    if not len(d):
        return _NOTHING
    differs = d != 0
    mean = float(d[differs].mean()) if differs.any() else 0.0
    beyond = np.where(differs, np.abs(d) - np.abs(2 * mean - d), 0.0) / 4
    seen, gain = float(np.abs(d).mean() - abs(d.mean())) / 2, float(beyond.mean())
    # How much each question moves the gain, through the mean as well.
    tilt = float(np.sign(2 * mean - d[differs]).mean()) / 2 if differs.any() else 0.0
    reach = _reach(beyond - np.where(differs, tilt * (d - mean), 0.0), group_numbers(rows))
    ends = (gain - reach, gain + reach) if reach is not None else None
    return _ceiling(d, scale, seen, seen - gain, ends)


def class_ceiling(table: pd.DataFrame, column: str = "labelled", scale: Scale = SHARE) -> Ceiling:
    """Return the ceiling of a router that knows the class in `column` and which arm is better for it.

    A question without a class goes with the better arm for all. The interval reaches down to where classes dealt out at
    random, or the gain of the same choice on other questions, would put it, and up to what the choice would gain on
    questions (or clusters) drawn anew.
    """
    rows = complete(table)
    d, groups = _differences(rows, scale), group_numbers(rows)
    if not len(d):
        return _NOTHING
    classes = np.where(rows[column] == "", 0, pd.factorize(rows[column])[0] + 1).astype(np.int64)
    random = np.random.default_rng(0)
    width = int(classes.max()) + 1
    dealt = [np.bincount(dealt_out(classes, groups, random), d, minlength=width) for _ in range(N_REFERENCES)]
    by_chance = _best(np.array(dealt)) / len(d)
    # What each question gains, where the better arm of its class replaces the better arm for all.
    for_all = d.sum() > 0
    is_on = np.bincount(classes, d, minlength=width) > 0
    is_on[0] = for_all
    gains: Floats = d * (is_on[classes].astype(float) - for_all)
    seen, reach = float(gains.mean()), _reach(gains, groups)
    if reach is None:
        return _ceiling(d, scale, seen, float(by_chance.mean()), None)
    low = min(seen - float(np.quantile(by_chance, _TAILS[1])), seen - float(by_chance.mean()) - reach)
    n = int(groups.max()) + 1
    sums = np.bincount(groups * width + classes, d, minlength=n * width).reshape(n, width)
    drawn = random.multinomial(n, np.full(n, 1 / n), size=N_REFERENCES).astype(np.float64)  # clusters drawn anew
    high = max(seen + reach, float(np.quantile(_best(drawn @ sums) / (drawn @ np.bincount(groups)), _TAILS[1])))
    return _ceiling(d, scale, seen, float(by_chance.mean()), (low, high))


def repeated_differences(
    scores: pd.DataFrame, metric: str, arms: Mapping[str, Any], clusters: Clusters | None = None
) -> pd.DataFrame:
    """Return `always` less `none` by question (rows) and repeat (columns), of questions that have two repeats or more.

    A repeat without a score in an arm is NaN; there is a column `cluster` where there are clusters.
    """
    ours = scores[(scores["metric"] == metric) & (scores["status"] == "scored")]
    ours = ours.assign(value=pd.to_numeric(ours["value"]).astype(float))
    arm = {name: ours[ours["variant_id"] == arms[name]] for name in ("none", "always")}
    wide = {name: part.pivot_table(index="question_id", columns="repeat", values="value") for name, part in arm.items()}
    both: pd.DataFrame = (wide["always"] - wide["none"]).sort_index()
    found: pd.DataFrame = both[both.notna().sum(axis=1) >= 2]
    if clusters is None:
        return found
    return found.assign(cluster=pd.Series(cluster_labels(found.index, clusters), index=found.index, dtype=object))


def _ceiling(d: Floats, scale: Scale, seen: float, by_chance: float, ends: tuple[float, float] | None) -> Ceiling:
    """Return what was found with the sign of the scores."""
    gain = scale.sign * (seen - by_chance)
    low, high = (None, None) if ends is None else sorted(scale.sign * end for end in ends)
    return Ceiling(
        len(d), "always" if d.sum() > 0 else "none", scale.sign * seen, scale.sign * by_chance, gain, low, high
    )


def _best(sums: Floats) -> Floats:
    """Return by how much the better arm of each class beats the better arm for all, (m,), from sums, (m, classes)."""
    for_all = np.maximum(sums.sum(axis=1), 0.0)
    unclassed = np.where(for_all > 0, sums[:, 0], 0.0)
    result: Floats = np.maximum(sums[:, 1:], 0.0).sum(axis=1) + unclassed - for_all
    return result


def _reach(values: Floats, groups: Numbers) -> float | None:
    """Return half the width of Student's interval of the mean; None for a single question or cluster."""
    column = units(values, groups.tolist())
    spread = column.standard_error
    return None if spread is None else float(stdtrit(len(column.sums) - 1, _TAILS[1])) * spread


def _differences(rows: pd.DataFrame, scale: Scale) -> Floats:
    d = scale.sign * (rows["always"] - rows["none"]).to_numpy(dtype=float)
    return np.where(np.abs(d) <= TIE, 0.0, d)
