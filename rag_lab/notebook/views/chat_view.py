"""A conversation and a written report, as a notebook shows them: sources with page and quote one click away."""

from rag_lab.assistant.chat import Chat
from rag_lab.assistant.report_writer import WrittenReport, source_place
from rag_lab.comparison.by_question import place
from rag_lab.notebook.views.view import View


def chat_view(chat: Chat) -> View:
    """Return the turns in order, each with what its answer cites folded below."""
    facts, folded = [], []
    for turn in chat.turns:
        cited = [
            f"[{one.number}] {place(one.source, one.page)}" + f"\n{one.quote}" * bool(one.quote)
            for one in turn.citations
        ]
        answer = "not answered yet" if turn.answer is None else turn.answer
        facts += [(f"{turn.number}. You", turn.question), ("Answer", answer)]
        if cited:
            folded.append((f"Sources of answer {turn.number}", "\n\n".join(cited)))
    changes = tuple(f"{one.key} = {one.value}" for one in chat.pipeline.config.changes())
    notes = (f"Settings: {', '.join(changes)}",) if changes else ()
    return View(f"Session {chat.session}", facts=tuple(facts), notes=notes, folded=tuple(folded))


def report_view(report: WrittenReport) -> View:
    """Return the sections, and the sources with their passages folded below."""
    facts = tuple(
        (f"{number}. {one.title}", one.text or one.problem) for number, one in enumerate(report.sections, start=1)
    )
    folded = tuple((f"[{one.number}] {source_place(one)}", one.text) for one in report.sources)
    notes = (f"{report.n_calls} calls, {report.tokens_out:,} tokens written; the report is in {report.folder}",)
    return View(report.header.replace("\n", " · "), facts=facts, notes=notes, folded=folded)
