"""A question, a data set, the profile of a corpus, a conversation, and a written report."""

import shlex
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import yaml

from rag_lab._kit.wording import counted, some_of
from rag_lab.assistant.chat import Chat, quoted_citations
from rag_lab.assistant.report_writer import WrittenReport, source_place
from rag_lab.comparison.by_question import place, thinking_of
from rag_lab.config import nested
from rag_lab.corpus.folder import list_files
from rag_lab.corpus_profile.corpus_profile import CorpusProfile
from rag_lab.data.dataset import Dataset
from rag_lab.notebook.views.view import Page, TextView, View, quoted
from rag_lab.records import Citation, Question, Trace
from rag_lab.report.table import Table
from rag_lab.stores.sparse import analyzer_for

_FIRST = 5


def question_view(question: Question) -> Page:
    """Return a question with what is known about its answer."""
    answers = " / ".join(question.answers) if question.answers else "none given"
    known = (
        ("Id", question.question_id),
        *(("Earlier turn", f"{turn.role}: {turn.content}") for turn in question.history),
        ("Answer", answers if question.answerable else "none: the documents do not answer this question"),
        ("Class", question.query_class or ""),
        ("Tags", ", ".join(question.tags)),
        ("Asker may see", "" if question.may_see is None else ", ".join(question.may_see) or "what is open to all"),
        ("Documents of", ", ".join(question.namespaces or ())),
    )
    facts, text = [(name, fact) for name, fact in known if fact], TextView()
    text.fact("Question", question.text)
    text.facts(facts)
    for evidence in question.evidence:
        text.fact("Evidence", quoted(place(evidence.source, evidence.page), evidence.quote))
    return Page("question_asked.html", {"question": question, "facts": facts}, text)


def dataset_view(dataset: Dataset) -> View:
    """Return what a data set holds, what is wrong with it, and its first questions."""
    questions, files = dataset.questions, list_files(dataset.corpus_dir).files
    kinds = _counted(path.suffix.lower() or "no suffix" for path in files.values())
    problems = dataset.problems
    asked = [question for question in questions if question.answerable]
    n, answers, evidence = len(asked), sum(bool(one.answers) for one in asked), sum(bool(one.evidence) for one in asked)
    counts = "none: it can be indexed and asked, and needs labelled questions to be evaluated"
    if questions:
        others = len(questions) - n
        counts = f"{len(questions):,}, of which {n:,} can be answered from the documents and {others:,} can not"
    labels = f"of {counted(n, 'answerable question')}, {answers:,} have an answer and {evidence:,} have evidence"
    rows = tuple(
        (
            one.question_id,
            one.query_class or "",
            one.text,
            " / ".join(one.answers),
            "; ".join(place(e.source, e.page) for e in one.evidence),
        )
        for one in questions[:_FIRST]
    )
    title = f"The first {_FIRST} of {len(questions):,} questions" if len(questions) > _FIRST else "The questions"
    return View(
        title=f"Dataset {dataset.name}",
        facts=(
            ("About", dataset.description),
            ("Folder", str(dataset.path)),
            ("Documents", f"{counted(len(files), 'file')}: {kinds}" if files else "no file that is read"),
            ("Language", dataset.language),
            ("Licence", dataset.licence),
            ("Questions", counts),
            ("Classes", _counted(question.query_class or "none" for question in questions)),
            ("Tags", _counted(tag for question in questions for tag in question.tags)),
            ("Labels", labels if asked else ""),
            ("Problems", f"{counted(len(problems), 'problem')}; the first: {problems[0]}" if problems else ""),
        ),
        tables=(Table(title, ("id", "class", "question", "answer", "evidence"), rows, names=2, words=3),)
        if rows
        else (),
    )


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in Counter(names).most_common())


def profile_view(profile: CorpusProfile) -> Page:
    """Return what a corpus is like, what to set and why, and what is wrong with its files."""
    analyzer, text = analyzer_for("auto", profile.language), TextView()  # a language may be declared by its code
    language = (profile.language if analyzer == "unicode" else analyzer).capitalize()
    types = ", ".join(
        f"{count:,} {suffix.removeprefix('.') or 'without a suffix'}" for suffix, count in profile.files.items()
    )
    unused = sum(profile.files.values()) - profile.n_used
    source = "as dataset.yaml says" if profile.declared else "detected"
    languages = ", ".join(
        f"{name.capitalize() or 'not told'} in {counted(n, 'file')}" for name, n in profile.languages.items()
    )
    facts = [
        ("files", f"{types}{f'; {unused:,} of them cannot be used' if unused else ''}"),
        ("text", f"{profile.n_pages:,} pages (with files without pages), {profile.n_words:,} words"),
        ("language", f"{language or 'none of most texts'}, {source}; {languages}"),
        ("tables", f"on {profile.n_tables:,} of {profile.n_pages:,} pages, as far as their text tells"),
        ("headings", f"in {profile.n_headings:,} of {counted(profile.n_used, 'file')}"),
        ("scans", some_of([f"{name} ({pages})" for name, pages in profile.scans.items()]) or "none"),
        ("same content", "; ".join(" = ".join(names) for names in profile.same[:5]) or "none"),
        ("near copies", "; ".join(map(str, profile.similar[:5])) or "none"),
        *((length.what, str(length)) for length in profile.lengths),
    ]
    flags = " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key, value in profile.settings.items())
    advised: dict[str, list[Any]] = {
        "Set": [item for item in profile.advice if item.key],
        "Compare": [item for item in profile.advice if item.factor],
        "Do": [item for item in profile.advice if not item.key and not item.factor],
    }
    text.block(profile.name)
    text.facts((f"  {name}", fact) for name, fact in facts)
    for title, items in advised.items():
        text.facts(("" if number else title, str(item)) for number, item in enumerate(items))
    if profile.settings:
        text.block("Paste", flags)
    if profile.problems:
        text.block(f"Problems: {len(profile.problems)}", "\n".join(map(str, profile.problems)))
    values = {
        "profile": profile,
        "facts": facts,
        "settings": advised["Set"],
        "factors": advised["Compare"],
        "to_do": advised["Do"],
        "flags": flags,
        "yaml": yaml.safe_dump(nested(profile.settings), sort_keys=False),
    }
    return Page("profile.html", values, text)


def profile_page(profile: CorpusProfile) -> str:
    """Return a profile as a page that needs nothing else."""
    return replace(profile_view(profile), template="profile_page.html").to_html()


def chat_view(chat: Chat) -> View:
    """Return the turns in order; the thinking and the sources of each are folded below."""
    facts, folded = [], []
    for turn in chat.turns:
        answer = "not answered yet" if turn.answer is None else turn.answer
        facts += [(f"{turn.number}. You", turn.question), ("Answer", answer)]
        below = [*([("Thinking", turn.thinking)] if turn.thinking else ()), *_sources(turn.citations)]
        folded += [(f"{turn.number}. {title}", text) for title, text in below]
    changes = ", ".join(f"{one.key} = {one.value}" for one in chat.pipeline.config.changes())
    return View(f"Session {chat.session}", tuple(facts), notes=(f"Settings: {changes}",), folded=tuple(folded))


def turn_view(question: str, answer: str, trace: Trace | None = None) -> View:
    """Return one turn, its thinking and its sources folded below; without a trace it is still being written."""
    if trace is None:
        return View("", (("You", question), ("Answer", f"{answer} …")))
    failed = f"{trace.failure.stage}: {trace.failure.reason}" if trace.failure else ""
    searched = trace.search_query or ""
    facts = (("You", question), ("Searched", searched * (searched != question)), ("Answer", answer), ("Failed", failed))
    thought = thinking_of(trace)
    folded = (*([("Thinking", thought)] if thought else ()), *_sources(quoted_citations(trace)))
    fell_back = tuple(f"{one.stage}: {one.reason}" for one in trace.stages if one.status == "fallback")
    return View("", facts, notes=fell_back, folded=folded)


def _sources(citations: Iterable[Citation]) -> list[tuple[str, str]]:
    return [
        (f"[{one.number}] {place(one.source, one.page)}", "\n".join(filter(None, (one.quote, one.url))))
        for one in citations
    ]


_LIVE_EVERY_S = 0.2  # so often an answer that is being written is drawn


def talk(chat: Chat, text: str = "") -> None:
    """Answer the next question of a conversation, and show it while it is written, with its sources below.

    Without a question the last one is answered once more, under the settings of now, and what they change is shown.
    """
    from IPython.display import display

    from rag_lab.notebook.bench.answers import Column, SideBySide
    from rag_lab.notebook.bench.bench import result_html

    before, heard, drawn_at = None if text else chat.last, "", 0.0
    asked = text or next((turn.question for turn in reversed(chat.turns)), "")
    handle = display(_both(turn_view(asked, "")), raw=True, display_id=True)

    def hear(piece: str) -> None:
        nonlocal heard, drawn_at
        heard += piece
        if handle and time.monotonic() - drawn_at > _LIVE_EVERY_S:
            handle.update(_both(turn_view(asked, heard)), raw=True)
            drawn_at = time.monotonic()

    trace = chat.ask(text, hear) if text else chat.again(hear)
    page = _both(turn_view(asked, trace.answer.text if trace.answer else "", trace))
    if before is not None:
        now = Column("B", "now", chat.pipeline.config, trace, trace.text)
        columns = Column("A", "before", before[0].config, before[1], before[1].text), now
        page["text/html"] += result_html(SideBySide(trace.question, columns))
    if handle:
        handle.update(page, raw=True)


def _both(view: View) -> dict[str, str]:
    return {"text/html": str(view.to_html()), "text/plain": view.to_text()}


def report_view(report: WrittenReport) -> View:
    """Return the sections, and the sources with their passages folded below."""
    facts = tuple((f"{n}. {one.title}", one.text or one.problem) for n, one in enumerate(report.sections, start=1))
    folded = tuple((f"[{one.number}] {source_place(one)}", one.text) for one in report.sources)
    notes = (f"{report.n_calls} calls, {report.tokens_out:,} tokens written; the report is in {report.folder}",)
    return View(report.header.replace("\n", " · "), facts=facts, notes=notes, folded=folded)
