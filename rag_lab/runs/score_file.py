"""scores.parquet: one row a variant, question, metric and repeat, written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_lab._kit.whole_file import whole_file
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


def to_frame(variant_id: str, scores: Iterable[Score]) -> pd.DataFrame:
    """Return one row a score, in order, with the columns of `COLUMNS`."""
    return _frame({"variant_id": variant_id} | _row(score) for score in scores)


def write_scores(path: Path, by_variant: Mapping[str, Sequence[Score]]) -> None:
    """Write the scores of all variants, whole or not at all."""
    rows = ({"variant_id": name} | _row(score) for name, scores in by_variant.items() for score in scores)
    write_frame(path, _frame(rows))


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """Write a table with the columns of `COLUMNS` to a Parquet file, replacing it at the end."""
    with whole_file(path) as partial:
        frame.to_parquet(partial, engine="pyarrow", index=False)


def read_scores(path: Path) -> pd.DataFrame:
    """Read what `write_scores` wrote, in order.

    Raises:
        DamagedFile: if it is not that.
    """
    import pandas as pd

    try:
        return pd.read_parquet(path, engine="pyarrow").astype(COLUMNS)
    except (OSError, ValueError, KeyError, TypeError):  # pyarrow's own errors are the first two
        raise DamagedFile(path, "it holds no scores") from None


def merged_scores(paths: Sequence[Path]) -> pd.DataFrame:
    """Return the scores of several files, one at least, one after the other; see `read_scores`."""
    import pandas as pd

    return pd.concat([read_scores(path) for path in paths], ignore_index=True)


def _row(score: Score) -> dict[str, object]:
    row = {name: getattr(score, name) for name in COLUMNS if name != "variant_id"}
    return row | {"reason": hide_known(score.reason)} if score.reason else row


def _frame(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS)).astype(COLUMNS)
