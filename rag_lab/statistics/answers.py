"""One comparison, one answer: what was found once is quoted wherever the same comparison is shown again.

A comparison that counted in two families would have two corrected p-values, and its reader two answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

Key = tuple[Any, Any, Any, int]  # metric, variant, against, questions
# What a table of differences says of a pair, in the order in which other tables say it of an effect.
ANSWER = ("n", "difference", "low", "high", "p_value", "p_corrected", "effect_size", "verdict", "doubt")


def answers(differences: pd.DataFrame | None) -> dict[Key, Mapping[Any, Any]]:
    """Return the rows of a table that `comparisons` made by metric, variant, against and number of questions."""
    rows = [] if differences is None else differences.to_dict("records")
    return {(row["metric"], row["variant_id"], row["against"], row["n"]): row for row in rows}
