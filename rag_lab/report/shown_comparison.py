"""A data frame of numbers that shows itself as a page for readers."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from rag_lab._kit.wording import text_table
from rag_lab.comparison.comparison import Comparison, read_comparison
from rag_lab.comparison.passages import RunTexts
from rag_lab.redaction import shown
from rag_lab.report.compare_text import WIDTH, screen
from rag_lab.report.page.report_page import differences_html, overview_html, to_markdown
from rag_lab.report.page.templates import asset, render
from rag_lab.report.score_tables import differences_of
from rag_lab.report.sections import named_tables
from rag_lab.report.table import shown_frame
from rag_lab.statistics.families import Pairs
from rag_lab.statistics.randomization import Correction


@dataclass(frozen=True)
class ShownComparison(Comparison):
    """A comparison for a pull request, for LaTeX, and for a notebook, which shows it where it is a cell's value."""

    def to_markdown(self) -> str:
        """Return the short report for a pull request."""
        return to_markdown(self)

    def to_latex(self) -> str:
        """Return all tables for LaTeX, with booktabs' rules."""
        tables = (table for some in named_tables(self).values() for table in some if table.rows)
        return "\n\n".join(table.to_latex() for table in tables) + "\n"

    def __post_init__(self) -> None:
        """Let the tables of numbers show themselves as tables for readers, and traces with the texts of the run."""

        def differences_text() -> str:  # of each difference what fits beside its verdict in full into these lines
            table = differences_of(self).only("variant", "metric", "difference", "95% interval", "verdict")
            return shown(f"{table.title}\n{text_table(table.header, table.rows, WIDTH)}")

        looks = {"style": asset("card.css"), "script": asset("sort.js")}
        texts = RunTexts(self.run, self.traces)
        values = {
            "summary": shown_frame(self.summary, lambda: render("scores.html", c=self, **looks), lambda: screen(self)),
            "differences": shown_frame(self.differences, lambda: differences_html(self), differences_text),
            "traces": {name: [replace(one, texts=texts) for one in some] for name, some in self.traces.items()},
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        run = self.run
        return f"Comparison({run.name!r}, {len(run.variants)} variants, {len(run.questions)} questions)"

    def __str__(self) -> str:
        """Return variants beside metrics, and what can be told from chance, in lines of at most 100 columns."""
        return screen(self)

    def _repr_html_(self) -> str:
        return overview_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else str(self))


def compare(
    run_dir: Path | str,
    *,
    correction: Correction = "max_t",
    pairs: Pairs = "baseline",
    margin: Mapping[str, float] | None = None,
    without_known: float | None = None,
) -> ShownComparison:
    """Read the run in `run_dir` and compare its variants.

    Args:
        run_dir: a folder written by `rag-lab sweep`.
        correction: of the p-values of a family: `max_t` (step-down maximum), `bh` (Benjamini-Hochberg, weaker, for
            screening many variants) or `none`.
        pairs: every variant against the `baseline`, or `all` pairs; with more comparisons, each is harder to find.
        margin: by metric the largest mean loss that you would accept; given here it is shown as post hoc.
        without_known: leave out the questions that a closed book (`answer.context: none`) answers with this score or a
            better one, in the first metric that reads answers: they tell nothing of retrieval.

    Raises:
        RagLabError: if the folder is no run, has no scores yet, or an option is unknown.
    """
    found = read_comparison(run_dir, correction=correction, pairs=pairs, margins=margin, without_known=without_known)
    return ShownComparison(**{field.name: getattr(found, field.name) for field in fields(found)})
