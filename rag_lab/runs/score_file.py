"""scores.parquet: one row a variant, question, metric and repeat, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rag_lab._kit.digest import whole_file
from rag_lab.errors import DamagedFile
from rag_lab.records import Score
from rag_lab.redaction import hide_known

if TYPE_CHECKING:
    import pandas as pd

# Column -> pandas dtype. `value` is null in the file, NaN in the frame, where `status` is not `scored`.
COLUMNS = {
    "variant_id": "string",
    "question_id": "string",
    "metric": "string",
    "repeat": "int64",
    "value": "float64",
    "status": "string",
    "reason": "string",
    "judge": "string",
    "seconds": "float64",
    "calls": "int64",
    "truncated_tokens": "int64",
}


def to_frame(by_variant: Mapping[str, Iterable[Score]]) -> pd.DataFrame:
    """Return one row a score of each variant, in order, with the columns of `COLUMNS`."""
    import pandas as pd

    rows = []
    for variant_id, scores in by_variant.items():
        for score in scores:
            row = {name: getattr(score, name) for name in COLUMNS if name != "variant_id"}
            rows.append(row | {"variant_id": variant_id, "reason": hide_known(score.reason) if score.reason else ""})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def write_scores(path: Path, scores: Mapping[str, Iterable[Score]] | pd.DataFrame) -> None:
    """Write scores by variant, or a table with the columns of `COLUMNS`, whole or not at all."""
    frame = to_frame(scores) if isinstance(scores, Mapping) else scores
    with whole_file(path) as partial:
        frame.to_parquet(partial, engine="pyarrow", index=False)


def read_scores(*paths: Path) -> pd.DataFrame:
    """Read what `write_scores` wrote, in order, one file at least, one after the other."""
    import pandas as pd

    frames = []
    for path in paths:
        try:
            frames.append(pd.read_parquet(path, engine="pyarrow").astype(COLUMNS))
        except (OSError, ValueError, KeyError, TypeError):  # pyarrow's own errors are the first two
            raise DamagedFile(path, "it holds no scores") from None
    return pd.concat(frames, ignore_index=True)
