"""What a notebook shows of traces: one question's whole history, and one question under every variant of a run."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from rag_lab.errors import RagLabError
from rag_lab.records import Trace

if TYPE_CHECKING:
    from rag_lab.comparison.comparison import Comparison


def show(trace: Trace) -> None:
    """Display every stage's result of `trace`."""
    from IPython.display import HTML, display

    from rag_lab.notebook.views.trace_view import to_html

    display(HTML(to_html(trace)))


def show_question(run: Comparison | Path | str, question_id: str) -> None:
    """Display what every variant of a run did with one question, side by side.

    Args:
        run: a run folder, or what `compare` made of it (faster where several questions are shown).
        question_id: the question, as in the dataset.

    Raises:
        RagLabError: if the folder is no run, or the question was not asked in it.
    """
    from IPython.display import HTML, display

    display(HTML(question_html(run, question_id)))


def question_html(run: Comparison | Path | str, question_id: str) -> str:
    """Return the HTML of `show_question`; everything from outside is escaped."""
    from rag_lab.report.page import report_page as html
    from rag_lab.report.shown_comparison import compare

    comparison = compare(run) if isinstance(run, Path | str) else run
    shown = html.question_html(comparison, question_id)
    if not shown:
        raise RagLabError(_unknown_question(question_id, list(comparison.questions["question_id"])))
    return shown


def _unknown_question(given: str, asked: list[str]) -> str:
    near = get_close_matches(given, asked)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?" if near else f"for example {', '.join(map(repr, asked[:3]))}."
    )
    return f"Unknown question {given!r}: give the id of one of the {len(asked)} questions of the run; {hint}"
