"""The effects of a design, tested and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rag_lab.statistics.effects.contrasts import design, design_effects, effects_table
from rag_lab.statistics.families import answers


def effects(
    scores: pd.DataFrame, values: Mapping[Any, Mapping[str, Any]], baseline: Any, planned: str = ""
) -> pd.DataFrame:
    """Return the effects that the variants with these values of the factors can show."""
    wanted = design_effects(scores, design(scores, values, baseline, planned=planned))
    return effects_table(wanted, answers(scores, [one.hypothesis for one in wanted]))
