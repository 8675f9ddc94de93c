"""A rule learned in a metric of which less is better: from turned scores, and told in the scores themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.learned_routing import LearnedRouting, learn_class_to_hyde
from rag_lab.statistics.routing import ARMS
from rag_lab.statistics.scales import Scale


def turned(table: pd.DataFrame, scale: Scale) -> pd.DataFrame:
    """Return a table of arms (see `statistics.routing`) in which more is better."""
    return table.assign(**{arm: table[arm].astype(float) * scale.sign for arm in ARMS if arm in table})


def learned_rule(table: pd.DataFrame, column: str, scale: Scale) -> LearnedRouting:
    """Return the rule that `learn_class_to_hyde` learns where the better arm is that of the better scores."""
    learned = learn_class_to_hyde(turned(table, scale), column)
    if scale.higher_is_better:
        return learned
    reasons = _reasons(learned.class_to_hyde, learn_class_to_hyde(table, column).reasons)
    return replace(learned, reasons=reasons, gains={arm: _mirrored(gain) for arm, gain in learned.gains.items()})


def _reasons(class_to_hyde: Mapping[str, bool], reasons: Mapping[str, str]) -> dict[str, str]:
    """Return the reasons, whose changes have the sign of the scores, with the decisions of the rule."""
    told = {name: reason.partition(": ")[2] for name, reason in reasons.items()}
    return {name: f"{'on' if on else 'off'}: {told[name]}" for name, on in class_to_hyde.items()}


def _mirrored(gain: PairedDifference) -> PairedDifference:
    mean, low, high = (None if one is None else 0.0 - one for one in (gain.mean, gain.high, gain.low))
    return replace(gain, mean=mean, low=low, high=high)
