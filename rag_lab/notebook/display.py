"""What notebooks show: a trace, a question under every variant of a run, a table of texts, how a run stands."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_lab._kit.wording import plain, seconds
from rag_lab.comparison.by_question import place, refused_rewrite, thinking_of
from rag_lab.comparison.passages import holds_evidence, opening, pieces
from rag_lab.comparison.tables.costs import SHOWN_S
from rag_lab.errors import RagLabError
from rag_lab.experiment.sweep_status import SweepStatus, sweep_status
from rag_lab.models.shared import small_model_note
from rag_lab.notebook.views.view import Page, TextView, one_line, quoted
from rag_lab.records import Hit, StageRecord, Trace
from rag_lab.redaction import NO_FORMULAS, shown
from rag_lab.runs.run_folder import RunFolder
from rag_lab.stages.retrieval.fusion import HYDE
from rag_lab.stages.stage import OFF
from rag_lab.stages.steps import ORDERED_BY, ScoreName, scores_of, stage_name

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

    from rag_lab.comparison.comparison import Comparison


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


_OPENING_CHARS = 78  # of a passage in a terminal
_WITH_TEXT = 5  # passages that are told there with their text; the others only by where they stand


@dataclass(frozen=True, slots=True)
class Ranking:
    """A list of hits as one of the stages left it."""

    title: str
    hits: Sequence[Hit]
    before: Sequence[Hit] = ()  # the list that it was made of
    is_final: bool = False

    @property
    def scores(self) -> list[tuple[str, ScoreName]]:
        """The steps that scored hits of the list; "" is the score that ordered it, where that is none of them."""
        named = scores_of(self.hits)
        is_sum = any(hit.scores and hit.score not in hit.scores.values() for hit in self.hits)
        return [*named, ("", ORDERED_BY)] if is_sum or not named else named

    @property
    def meanings(self) -> list[ScoreName]:
        """The scores of which it can be said what they mean."""
        return [name for _, name in self.scores if name.meaning]

    def rank_before(self, hit: Hit) -> int | None:
        """Return where a hit stood in the list before, from 1."""
        return next((n for n, other in enumerate(self.before, 1) if other.parent_id == hit.parent_id), None)


def trace_view(trace: Trace) -> Page:
    """Return question, answer, rankings and stages; the text has the final ranking alone."""
    lists, off = rankings(trace), [stage_name(record.stage) for record in trace.stages if is_off(record)]
    values = {
        "trace": trace,
        "rankings": lists,
        "read_as": {passage.parent_id: passage.number for passage in trace.passages},
        "refused": refused_rewrite(trace),
        "toy": toy_of(trace),
        "ran": [record for record in trace.stages if not is_off(record)],
        "off": off,
        "stage_name": stage_name,
        "thought": thinking_of(trace),
    }
    text = TextView()
    text.fact("Question", trace.question.text)
    _add_answer(text, trace)
    text.fact("Reference", " / ".join(trace.question.answers))
    for evidence in trace.question.evidence:
        text.fact("Evidence", quoted(place(evidence.source, evidence.page), evidence.quote))
    if trace.query_class:
        labelled = f" (labelled {trace.question.query_class})" if trace.question.query_class else ""
        text.fact("Class", trace.query_class + labelled)
    text.fact("Searched", trace.search_query or "")
    text.fact("Refused", refused_rewrite(trace) or "")
    text.fact("Searched, too", " / ".join(trace.phrasings))
    text.fact("Path", " → ".join(f"{visit.node} {visit.query or visit.says}" for visit in trace.visits))
    text.fact("HyDE text", "\n\n".join(trace.hypotheticals))
    for ranking in lists[:1]:
        step, score = ranking.scores[-1]
        lines = []
        for rank, hit in enumerate(ranking.hits, 1):
            holds = holds_evidence(hit, trace.question)
            number = plain(hit.scores.get(step, hit.score))
            lines.append(f"{rank:4} {'★' if holds else ' '} {number:>8}  {one_line(place(hit.source, hit.page))}")
            words = opening(pieces(hit, trace.text(hit), trace.question), _OPENING_CHARS)
            if words and (holds or rank <= _WITH_TEXT):
                lines.append(" " * 17 + one_line("".join(piece.text for piece in words)))
        title = f"{ranking.title}: {len(ranking.hits)}, by {score.short} (★ holds evidence)"
        text.block(title, "\n".join(lines))
    if trace.stages:
        noticed = [
            record
            for record in trace.stages
            if record.status != "ok" or record.seconds >= SHOWN_S or record.tokens_in or record.truncated_tokens
        ]
        text.fact("Stages", "; ".join(map(_stage_text, noticed)))
        text.fact("Off", ", ".join(off))
    return Page("trace.html", values, text)


def rankings(trace: Trace) -> list[Ranking]:
    """Return the lists of a trace, the final one first, then those that it came from; none is told twice."""
    is_reranked = any(record.stage == "rerank" and not is_off(record) for record in trace.stages)
    order = "after reranking" if is_reranked else "in the order of the merge, not reranked"
    searches = {name: found for name, found in trace.hits.items() if name != HYDE}
    by_search = [Ranking(stage_name(f"search_{name}"), found) for name, found in searches.items()]
    final = [Ranking(f"Ranked, {order}", trace.ranked, trace.candidates if is_reranked else (), is_final=True)]
    earlier = [
        Ranking("Candidates", trace.candidates),
        Ranking("Found by the question", trace.base_hits),
        Ranking("Found by the HyDE text", trace.hits.get(HYDE, ())),
        *(by_search if len(searches) > 1 else ()),
    ]
    by_ids: dict[tuple[str, ...], Ranking] = {}
    for ranking in (*final, *earlier):
        if ranking.hits:
            by_ids.setdefault(tuple(hit.parent_id for hit in ranking.hits), ranking)
    return list(by_ids.values())


def is_off(record: StageRecord) -> bool:
    """Tell whether a stage was switched off."""
    return record.status == "ok" and record.reason == OFF


def toy_of(trace: Trace) -> str:
    """Return the note on a packaged model that wrote the answer, or ''."""
    return small_model_note(next((record.model for record in trace.stages if record.stage == "generate"), ""))


def _add_answer(view: TextView, trace: Trace) -> None:
    if trace.failure:
        view.fact("Failed", f"{stage_name(trace.failure.stage)}: {trace.failure.reason}")
    if trace.answer is None:
        view.fact("Model wrote", trace.raw_text or "")
        return
    abstained = " (abstained)" if trace.answer.abstained else ""
    view.fact("Answer", trace.answer.text + abstained)
    for cited in trace.answer.citations:
        view.fact("", quoted(f"[{cited.number}] {cited.url or place(cited.source, cited.page)}", cited.quote))
    view.fact("Not in context", ", ".join(trace.answer.rejected_citations))
    view.fact("Note", toy_of(trace))


def _stage_text(record: StageRecord) -> str:
    tokens = f", {record.tokens_in:,} + {record.tokens_out:,} tokens" if record.tokens_in or record.tokens_out else ""
    if record.thinking_tokens:
        tokens += f", {record.thinking_tokens:,} of them thinking"
    if record.truncated_tokens:
        tokens += f", {record.truncated_tokens:,} tokens not read"
    troubled = f" ({record.status}: {record.reason})" if record.status != "ok" else ""
    return f"{stage_name(record.stage)} {seconds(record.seconds)} s{tokens}{troubled}"
