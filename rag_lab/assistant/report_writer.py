"""`rl.write`: a report on a topic, section by section, from the documents of a pipeline.

Passages for the topic, an outline, then for each title: passages for the title alone, a draft, its review: 1 + 2 n
calls of `models.report`. Every call is remembered, so that a report that was killed goes on where it was.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Literal

from pydantic import create_model

from rag_lab._kit.digest import digest, whole_file
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question, StageRecord, Trace
from rag_lab.rich_display import rich_display
from rag_lab.stages import stage as base
from rag_lab.stages.chat_template import SHIPPED_PROMPTS, ChatTemplate
from rag_lab.stages.context import render_passages
from rag_lab.stages.generate import checked_citations
from rag_lab.stages.run_stage import run_stage
from rag_lab.stages.understand import read_object

Style = Literal["technical", "general"]
VERSION = 1  # of the wording below: results are remembered by it
_OUTLINE = create_model("Outline", entries=list[str])  # the object that the model returns


@dataclass(frozen=True)
class WriteOutline(base.ChatStage):
    """Ask for `parts` titles; they become the answer of the trace, a line a title."""

    parts: int
    seed: int = 0
    prompt: ChatTemplate | None = None  # in place of the one that is built in

    PROMPTS = VERSION
    name = "outline"
    reads = ("question.text", "passages")
    writes = ("raw_text",)

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one topic."""
        topic, context = trace.question.text, render_passages(trace.passages)
        values = {"topic": topic, "parts": self.parts, "context": context, "passages": trace.passages}
        asked = f"Topic: {topic}\n\nSections: {self.parts}\n\nPassages:\n{context or 'none'}"
        messages = self.prompt.messages(values) if self.prompt else base.shipped_chat("outline", asked)
        schema = base.object_schema(entries={"type": "array", "items": {"type": "string"}, "maxItems": self.parts})
        return [ChatRequest(messages, 48 * self.parts, seed=self.seed + trace.repeat, json_schema=schema)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> base.Outcome:
        """Keep titles that are not blank, each once, and no more than were asked for, as the record says."""
        found: Any = read_object(replies[0], _OUTLINE)
        if isinstance(found, str):
            return base.chat_outcome(replies[0], {}, "failed", f"there is no outline: {found}")
        titles = [*dict.fromkeys(title for entry in found.entries if (title := " ".join(entry.split())))]
        kept = titles[: self.parts]
        reason = f"{len(titles)} titles were written; the first {len(kept)} are kept" if len(titles) > len(kept) else ""
        return base.chat_outcome(replies[0], {"raw_text": "\n".join(kept)}, "fallback" if reason else "ok", reason)


@dataclass(frozen=True)
class _WriteText(base.ChatStage):
    """Ask for the text of one section; the question of the trace is its title."""

    topic: str
    max_tokens: int
    seed: int = 0
    prompt: ChatTemplate | None = None

    PROMPTS = VERSION
    writes = ("prompt", "raw_text")

    def messages(self, trace: Trace) -> tuple[Message, ...]:
        """Return what is asked for one section."""
        raise NotImplementedError

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one section."""
        return [ChatRequest(self.messages(trace), self.max_tokens, seed=self.seed + trace.repeat)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> base.Outcome:
        """Keep the text."""
        reply, prompt = replies[0], base.written(requests[0].messages)
        if reply.error or not reply.text.strip():
            return base.chat_outcome(reply, {"prompt": prompt}, "failed", reply.error or base.nothing_written(reply))
        return base.chat_outcome(reply, {"prompt": prompt, "raw_text": reply.text.strip()})


@dataclass(frozen=True)
class WriteDraft(_WriteText):
    """Ask for a draft from the passages."""

    style: Style = "technical"

    name = "section"
    reads = ("question.text", "passages")

    def messages(self, trace: Trace) -> tuple[Message, ...]:
        """Return topic, title and passages."""
        title, context = trace.question.text, render_passages(trace.passages)
        values = {"topic": self.topic, "section": title, "context": context, "passages": trace.passages}
        if self.prompt:
            return self.prompt.messages(values)
        asked = f"Report: {self.topic}\nSection: {title}\n\nPassages:\n{context or 'none'}"
        return base.shipped_chat("section", asked, style=SHIPPED_PROMPTS["section"]["styles"][self.style])


@dataclass(frozen=True)
class Review(_WriteText):
    """Ask for an improved text of the draft, without the passages."""

    name = "review"
    reads = ("question.text", "raw_text")

    def messages(self, trace: Trace) -> tuple[Message, ...]:
        """Return topic, title and draft."""
        title, draft = trace.question.text, trace.raw_text or ""
        if self.prompt:
            return self.prompt.messages({"topic": self.topic, "section": title, "draft": draft})
        asked = f"Report: {self.topic}\nSection: {title}\n\nDraft:\n{draft}"
        return base.shipped_chat("review", asked)


REPORT_FILE = "report.json"
REPORTS = Path("results", "reports")  # in the working folder, as its runs are
MOST_PARTS = 20
_SECTION_TOKENS = 600
_LINK = r'<a href="#c\1">[\1]</a>'
_NUMBER = re.compile(r"\[(\d{1,9})\]")
Progress = Callable[[str, int, int], object]  # what is done, calls made, calls to make


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that a report cites, under the number that it has there."""

    number: int
    source: str
    page: int | None
    text: str


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section. Numbers in brackets are those of the report's sources; what named none was taken out."""

    title: str
    draft: str
    text: str
    rejected: tuple[str, ...] = ()  # citations of nothing that was read for this section
    problem: str = ""  # why there is no text, or why it is the draft


@rich_display("rag_lab.notebook.views.data_view:report_view")
@dataclass(frozen=True)
class WrittenReport:
    """A report with its sources, and what its calls were."""

    topic: str
    style: Style
    sections: tuple[ReportSection, ...]
    sources: tuple[Source, ...]
    n_calls: int
    tokens_out: int
    cost_usd: float
    folder: str = ""

    @property
    def header(self) -> str:
        """The two lines above everything."""
        return f"{self.style.upper()} REPORT\nTITLE: {self.topic}"

    def to_markdown(self) -> str:
        """Return header, contents, sections and sources."""
        lines = [*self.header.split("\n"), "", "## Contents", ""]
        lines += [f"{number}. {one.title}" for number, one in enumerate(self.sections, start=1)]
        for number, one in enumerate(self.sections, start=1):
            lines += ["", f"## {number}. {one.title}", "", one.text or f"*{one.problem}*"]
        lines += ["", "## Sources", ""]
        lines += [f"- [{one.number}] {source_place(one)}" for one in self.sources] or ["Nothing is cited."]
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """Return the report as a page that needs nothing else; a citation leads to its source, with the passage."""
        parts = [f"<h1>{escape(self.topic)}</h1><p class=kind>{self.style.upper()} REPORT</p><ol class=contents>"]
        parts += [f'<li><a href="#s{n}">{escape(one.title)}</a></li>' for n, one in enumerate(self.sections, 1)]
        parts.append("</ol>")
        for n, one in enumerate(self.sections, 1):
            texts = (one.text or one.problem).split("\n\n")
            body = "".join(f"<p>{_NUMBER.sub(_LINK, escape(text))}</p>" for text in texts)
            parts.append(f'<h2 id="s{n}">{n}. {escape(one.title)}</h2>{body}')
        parts.append("<h2>Sources</h2><dl>")
        parts += [
            f'<dt id="c{one.number}">[{one.number}] {escape(source_place(one))}</dt><dd>{escape(one.text)}</dd>'
            for one in self.sources
        ]
        return _PAGE.format(title=escape(self.topic), body="".join(parts) + "</dl>")


_PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>:root{{color-scheme:light dark}}body{{max-width:46rem;margin:2rem auto;padding:0 1rem;font:1rem/1.55 system-ui}}
.kind{{letter-spacing:.08em;opacity:.7}}dt{{font-weight:600;margin-top:.8rem}}dd{{margin:0;white-space:pre-wrap}}</style>
<body>{body}</body></html>
"""


def write(
    pipeline: Pipeline,
    topic: str,
    *,
    parts: int = 5,
    style: Style = "technical",
    may_see: tuple[str, ...] | None = None,
    namespace: str | None = None,
    folder: Path | str | None = None,
    progress: Progress = lambda what, done, total: None,
) -> WrittenReport:
    """Write a report on `topic` in at most `parts` sections (1 to 20, else a ConfigError), below results/reports.

    A RagLabError where the outline cannot be had, or is empty: the documents say nothing about the topic.
    """
    topic = " ".join(topic.split())
    if not topic or not 1 <= parts <= MOST_PARTS:
        wrong = "the topic is empty" if not topic else f"parts is {parts}"
        raise ConfigError(f"A report takes a topic and 1 to {MOST_PARTS} parts; {wrong}.")
    author = _Author(pipeline, topic, style, Question("report", topic, may_see=may_see, namespace=namespace), progress)
    report = author.report(parts)
    name = f"{re.sub(r'[^a-z0-9]+', '-', topic.lower()).strip('-')[:40]}-{digest([topic, parts, style])[:6]}"
    target = Path(folder) if folder else REPORTS / name
    report = replace(report, folder=str(target))
    target.mkdir(parents=True, exist_ok=True)
    record = json.dumps(asdict(report), ensure_ascii=False, indent=1)
    for name, text in (("report.md", report.to_markdown()), ("report.html", report.to_html()), (REPORT_FILE, record)):
        with whole_file(target / name) as partial:
            partial.write_text(text, encoding="utf-8")
    return report


def earlier_reports() -> list[tuple[Path, str]]:
    """Return the folders of reports with their topics, the newest first; one that cannot be read is left out."""
    found = []
    for path in sorted(REPORTS.glob(f"*/{REPORT_FILE}"), key=lambda path: -path.stat().st_mtime):
        try:
            found.append((path.parent, str(json.loads(path.read_bytes())["topic"])))
        except (OSError, ValueError, LookupError, TypeError):
            continue
    return found


@dataclass
class _Author:
    """One report on its way."""

    pipeline: Pipeline
    topic: str
    style: Style
    asker: Question
    progress: Progress
    done: int = 0
    total: int = 1

    def __post_init__(self) -> None:
        self._records: list[StageRecord] = []
        self._sources: dict[tuple[str, int | None, int, int], Source] = {}

    def report(self, parts: int) -> WrittenReport:
        """Return the whole report."""
        config, prompts, chat = self.pipeline.config, self.pipeline.parts.prompts, self.pipeline.parts.chat
        self.total = 1 + 2 * parts
        model, seed = chat("report", "outline"), config.seed
        outlined = self._call(WriteOutline(model, parts, seed, prompts.get("outline")), self._with_passages(self.topic))
        if outlined.failure:
            raise RagLabError(f"The report on {self.topic!r} could not be begun: {outlined.failure.reason}.")
        titles = [title for title in (outlined.raw_text or "").split("\n") if title]
        if not titles:
            raise RagLabError(
                f"The outline of a report on {self.topic!r} is empty: the passages that were found say nothing of it."
            )
        self.total = 1 + 2 * len(titles)
        place = f"section_{self.style}"
        draft = WriteDraft(chat("report", "section"), self.topic, _SECTION_TOKENS, seed, prompts.get(place), self.style)
        review = Review(chat("report", "review"), self.topic, _SECTION_TOKENS, seed, prompts.get("review"))
        sections = tuple(self._section(title, draft, review) for title in titles)
        cited = sorted(self._sources.values(), key=lambda one: one.number)
        tokens = sum(record.tokens_out for record in self._records)
        cost = sum(record.cost_usd for record in self._records)
        return WrittenReport(self.topic, self.style, sections, tuple(cited), len(self._records), tokens, cost)

    def _section(self, title: str, draft: WriteDraft, review: Review) -> ReportSection:
        drafted = self._call(draft, self._with_passages(title))
        if drafted.failure:
            return ReportSection(title, "", "", problem=f"no draft: {drafted.failure.reason}")
        reviewed = self._call(review, replace(drafted, stages=()))
        text, rejected = self._cited(reviewed.raw_text or "", drafted)
        problem = f"the draft stands, as its review failed: {reviewed.failure.reason}" if reviewed.failure else ""
        return ReportSection(title, self._cited(drafted.raw_text or "", drafted)[0], text, rejected, problem)

    def _cited(self, text: str, trace: Trace) -> tuple[str, tuple[str, ...]]:
        """Return a text with the numbers of the report's sources in place of those of its passages."""
        by_number = {passage.number: passage for passage in trace.passages}
        accepted, rejected = checked_citations(_NUMBER.findall(text), trace.passages)
        numbers: dict[int, int] = {}
        for citation in accepted:
            passage = by_number[citation.number]
            span = (passage.source, passage.page, passage.start, passage.end)
            if span not in self._sources:
                number = len(self._sources) + 1
                self._sources[span] = Source(number, passage.source, passage.page, passage.text)
            numbers[citation.number] = self._sources[span].number

        def numbered(found: re.Match[str]) -> str:
            number = numbers.get(int(found[1]))
            return f"[{number}]" if number else ""

        return re.sub(r"[ \t]+([.,;])", r"\1", _NUMBER.sub(numbered, text)), rejected

    def _with_passages(self, text: str) -> Trace:
        question = replace(self.asker, text=text)
        (trace,) = self.pipeline.run([question], answer=(), read=lambda _: {"passages"})
        asked = replace(trace.question, text=text, evidence=(), answers=(), history=())
        return replace(Trace(asked, trace.repeat), passages=trace.passages)  # a trace that has found nothing else yet

    def _call(self, stage: base.Stage, trace: Trace) -> Trace:
        self.progress(f"{stage.name}: {trace.question.text}", self.done, self.total)
        (after,) = run_stage(stage, [trace], self.pipeline.memory)
        self._records.append(after.stages[-1])
        self.done += 1
        self.progress(stage.name, self.done, self.total)
        return after


def source_place(one: Source) -> str:
    """Return the file of a source with its page."""
    return one.source if one.page is None else f"{one.source}, page {one.page}"
