"""What the best router could reach: HyDE for just the questions that it helps."""

from __future__ import annotations

from typing import Any

import pandas as pd

from rag_lab.statistics.intervals import mean_intervals, paired_differences
from rag_lab.statistics.routing.routing_table import cluster_column, complete
from rag_lab.statistics.scales import SHARE, Scale

ORACLE_COLUMNS = ("n", "oracle", "oracle_low", "oracle_high", "best_arm", "best_mean", "gain", "low", "high", "always")


def oracle(table: pd.DataFrame, seed: int = 0, scale: Scale = SHARE) -> dict[str, Any]:
    """Return the ceiling of any router: for each question the better of `none` and `always`, known afterwards.

    It is optimistic: of two noisy scores the better is chosen, so that even two equal arms would show a gain. No router
    that must decide beforehand gets there; what the classes can give is measured by `learn_class_to_hyde`.

    Keys: `n`, `oracle` with `oracle_low` and `oracle_high`, `best_arm` (the better of the two for all), `best_mean`,
    `gain` of the oracle over it with `low` and `high` (negative where less is better), `always`: share of questions for
    which HyDE is the better arm.
    """
    rows = complete(table)
    none, always = rows["none"], rows["always"]
    best = list((pd.concat([none, always], axis=1) * scale.sign).max(axis=1) * scale.sign)
    clusters = cluster_column([rows])
    ceiling = mean_intervals([best], seed=seed, clusters=clusters)[0]
    arm = "always" if scale.sign * (always.sum() - none.sum()) > 0 else "none"
    gain = paired_differences([(best, list(rows[arm]))], seed=seed, clusters=clusters)[0]
    share = float((scale.sign * (always - none) > 0).mean()) if len(rows) else None
    best_mean = float(rows[arm].mean()) if len(rows) else None
    values = (len(rows), ceiling.mean, ceiling.low, ceiling.high, arm, best_mean, gain.mean, gain.low, gain.high, share)
    return dict(zip(ORACLE_COLUMNS, values, strict=True))
