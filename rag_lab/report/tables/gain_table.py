"""What each variant reaches of the gain from a closed book to the labelled evidence, as a table."""

from __future__ import annotations

from rag_lab._kit.numbers import DASH, plain
from rag_lab.comparison.bounds.gain_sentences import share_of_gain
from rag_lab.comparison.bounds.reachable_gain import Reach
from rag_lab.comparison.comparison import Comparison
from rag_lab.report.tables.table import Table

_HEADER = ("variant", "metric", "n", "closed book", "mean", "evidence", "share of the gain", "95% interval", "why not")


def gain_table(comparison: Comparison) -> Table:
    """Return a row a metric and variant whose reader has both bounds; `gain_sentences` name the others."""
    rows = tuple(_row(comparison, one, one.means) for one in comparison.gain if one.means is not None)
    return Table("Share of the reachable gain", _HEADER, rows, names=2, words=1)


def _row(comparison: Comparison, one: Reach, means: tuple[float, ...]) -> tuple[str, ...]:
    found = one.found
    has_interval = found.low is not None and found.high is not None
    ends = f"{share_of_gain(found.low or 0)} to {share_of_gain(found.high or 0)}" if has_interval else DASH
    share = DASH if found.share is None else share_of_gain(found.share)
    return (
        comparison.name(one.variant_id), comparison.directed(one.metric), str(found.n), *map(plain, means), share, ends,
        found.reason,
    )  # fmt: skip
