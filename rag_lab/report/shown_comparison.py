"""`compare` reads a run folder into a comparison that shows itself."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.read_comparison import read_comparison
from rag_lab.report.page.report_page import overview_html
from rag_lab.report.tables.comparison_tables import tables
from rag_lab.report.text.markdown import to_markdown
from rag_lab.statistics.complete_cases import Pairs
from rag_lab.statistics.corrections import Correction


@dataclass(frozen=True)
class ShownComparison(Comparison):
    """A comparison for a pull request, for LaTeX, and for a notebook, which shows it where it is a cell's value."""

    def to_markdown(self) -> str:
        """Return the short report for a pull request."""
        return to_markdown(self)

    def to_latex(self) -> str:
        """Return all tables for LaTeX, with booktabs' rules."""
        return "\n\n".join(table.to_latex() for table in tables(self) if table.rows) + "\n"

    def _repr_html_(self) -> str:
        return overview_html(self)


def compare(run_dir: Path | str, *, correction: Correction = "holm", pairs: Pairs = "baseline") -> ShownComparison:
    """Read the run in `run_dir` and compare its variants.

    Args:
        run_dir: a folder written by `rag-lab sweep`.
        correction: of the p-values for many comparisons: `holm`, `bh` (Benjamini-Hochberg, weaker, for screening many
            variants) or `none`.
        pairs: every variant against the `baseline`, or `all` pairs; with more comparisons, each is harder to settle.

    Raises:
        RagLabError: if the folder is no run, has no scores yet, or an option is unknown.
    """
    found = read_comparison(run_dir, correction=correction, pairs=pairs)
    return ShownComparison(**{field.name: getattr(found, field.name) for field in fields(found)})
