"""What notebooks show: a trace, a question under every variant of a run, a table of texts, how a run stands."""

from __future__ import annotations

import time
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_lab.errors import RagLabError
from rag_lab.experiment.sweep_status import SweepStatus, sweep_status
from rag_lab.records import Trace
from rag_lab.redaction import NO_FORMULAS, shown
from rag_lab.runs.run_folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

    from rag_lab.comparison.comparison import Comparison


def show(trace: Trace) -> None:
    """Display every stage's result of `trace`."""
    from IPython.display import HTML, display

    from rag_lab.notebook.views.trace_view import trace_view

    display(HTML(trace_view(trace).to_html()))


def show_question(run: Comparison | Path | str, question_id: str) -> None:
    """Display what every variant of a run did with one question, side by side.

    `run` is a run folder, or what `compare` made of it, which is faster where several questions are shown.
    """
    from IPython.display import HTML, display

    display(HTML(question_html(run, question_id)))


def question_html(run: Comparison | Path | str, question_id: str) -> str:
    """Return the HTML of `show_question`; everything from outside is escaped."""
    from rag_lab.report.page import report_page
    from rag_lab.report.shown_comparison import compare

    comparison = compare(run) if isinstance(run, Path | str) else run
    shown = report_page.question_html(comparison, question_id)
    if not shown:
        asked = list(comparison.questions["question_id"])
        near = " or ".join(map(repr, get_close_matches(question_id, asked)))
        hint = f"did you mean {near}?" if near else f"for example {', '.join(map(repr, asked[:3]))}."
        raise RagLabError(
            f"Unknown question {question_id!r}: give the id of one of the {len(asked)} questions of the run; {hint}"
        )
    return shown


def texts_table(frame: pd.DataFrame) -> Styler:
    """Return a table in which texts stand whole and at the left, without the index; numbers have three digits.

    Texts of documents, models and people are shown as they are: nothing in them is taken for HTML.
    """
    safe = frame.reset_index(drop=True).map(lambda value: shown(value) if isinstance(value, str) else value)
    table = safe.style.format(escape="html", precision=3, na_rep="–").format_index(escape="html", axis=1)
    columns: list[Any] = [{"selector": "th, td", "props": "text-align: left; vertical-align: top"}]
    return table.hide(axis="index").set_table_styles(columns).set_table_attributes(f'class="{NO_FORMULAS}"')


def status(run: RunFolder | Path | str, *, watch: bool = False, every_s: float = 2.0) -> SweepStatus:
    """Return how a run stands, which shows itself; with `watch` it is shown, anew, until the run ends.

    The sweep may run in another process, or on another machine that shares the folder; to interrupt the cell ends
    watching, not the sweep.
    """
    path = run.path if isinstance(run, RunFolder) else Path(run)
    found = sweep_status(path)
    if not watch:
        return found
    from IPython.display import display

    shown = display(found, display_id=True)
    while found.state == "running":
        time.sleep(every_s)
        found = sweep_status(path)
        if shown is not None:
            shown.update(found)
    return found
