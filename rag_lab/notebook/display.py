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

    display(HTML(trace_html(trace)))


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


def trace_html(trace: Trace) -> str:
    """Return the HTML of `show`; everything from outside is escaped."""
    from rag_lab.comparison.passage_table import holds_evidence
    from rag_lab.comparison.question_cards import refused_rewrite
    from rag_lab.models.toy_note import toy_note
    from rag_lab.report.page.templates import asset, render
    from rag_lab.stages.retrieval.search import HYDE

    titles = {"dense": "Dense search", "bm25": "BM25", "tfidf": "TF-IDF"}
    searches = [(titles.get(name, name), found) for name, found in trace.hits.items() if found and name != HYDE]
    lists = [
        *((name, found, False) for name, found in searches if len(searches) > 1),
        ("Found by the question", trace.base_hits, False),
        ("Found by the HyDE text", trace.hits.get(HYDE, ()), False),
        ("Candidates after merging", trace.candidates, False),
        ("After reranking and selection", trace.ranked, True),
    ]
    hits = [hit for _, found, _ in lists for hit in found]
    return render(
        "trace.html",
        trace=trace,
        style=asset("card.css"),
        hits=[entry for entry in lists if entry[1]],
        steps=list(dict.fromkeys(step for hit in hits for step in hit.scores)),
        refused=refused_rewrite(trace),
        toy=toy_note(next((record.model for record in trace.stages if record.stage == "generate"), "")),
        holds_evidence=holds_evidence,
    )
