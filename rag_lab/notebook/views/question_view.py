"""A question with what is known about its answer."""

from __future__ import annotations

from rag_lab.comparison.questions.replies import place
from rag_lab.notebook.views.text_view import TextView
from rag_lab.records import Question
from rag_lab.report.page.templates import asset, render


def to_html(question: Question) -> str:
    """Return what is known of a question; everything from outside is escaped."""
    return render("question_asked.html", question=question, style=asset("card.css"), facts=_facts(question))


def to_text(question: Question) -> str:
    """Return what is known of a question in at most 100 columns."""
    view = TextView()
    view.fact("Question", question.text)
    for name, text in _facts(question):
        view.fact(name, text)
    for evidence in question.evidence:
        quote = f" “{evidence.quote}”" if evidence.quote else ""
        view.fact("Evidence", place(evidence.source, evidence.page) + quote)
    return view.text()


def _facts(question: Question) -> list[tuple[str, str]]:
    answers = " / ".join(question.answers) if question.answers else "none given"
    facts = [
        ("Id", question.question_id),
        *(("Earlier turn", f"{turn.role}: {turn.content}") for turn in question.history),
        ("Answer", answers if question.answerable else "none: the documents do not answer this question"),
        ("Class", question.query_class or ""),
        ("Tags", ", ".join(question.tags)),
        ("Asker may see", "" if question.may_see is None else ", ".join(question.may_see) or "what is open to all"),
        ("Documents of", question.namespace or ""),
    ]
    return [(name, text) for name, text in facts if text]
