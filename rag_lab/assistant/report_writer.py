"""`rl.write`: a report on a topic, section by section, from the documents of a pipeline.

Passages for the topic, an outline, then for each title: passages for the title alone, a draft, its review: 1 + 2 n
calls of `models.report`. Every call is remembered, so that a report that was killed goes on where it was.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import create_model

from rag_lab._kit.digest import digest, whole_file
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.pipeline import Pipeline
from rag_lab.records import Passage, Question, StageRecord, Trace
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


_ASKED = {
    "section": "Report: {topic}\nSection: {section}\n\nPassages:\n{context}",
    "review": "Report: {topic}\nSection: {section}\n\nDraft:\n{draft}",
}


@dataclass(frozen=True)
class WriteText(base.ChatStage):
    """Ask for the text of the section whose title is the question: a draft from passages, or a review of the draft."""

    name: str  # of `_ASKED`
    reads: tuple[str, ...]
    topic: str
    max_tokens: int
    seed: int = 0
    prompt: ChatTemplate | None = None
    style: Style = "technical"

    PROMPTS = VERSION
    writes = ("prompt", "raw_text")

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one section."""
        values = {"topic": self.topic, "section": trace.question.text, "draft": trace.raw_text or ""}
        values["context"] = render_passages(trace.passages)
        if self.prompt:
            messages = self.prompt.messages({**values, "passages": trace.passages})
        else:
            asked = _ASKED[self.name].format(**{**values, "context": values["context"] or "none"})
            styles = SHIPPED_PROMPTS[self.name].get("styles")
            messages = base.shipped_chat(self.name, asked, **({"style": styles[self.style]} if styles else {}))
        return [ChatRequest(messages, self.max_tokens, seed=self.seed + trace.repeat)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> base.Outcome:
        """Keep the text."""
        reply, prompt = replies[0], base.written(requests[0].messages)
        if reply.error or not reply.text.strip():
            return base.chat_outcome(reply, {"prompt": prompt}, "failed", reply.error or base.nothing_written(reply))
        return base.chat_outcome(reply, {"prompt": prompt, "raw_text": reply.text.strip()})


REPORT_FILE = "report.json"
REPORTS = Path("results", "reports")  # in the working folder, as its runs are
MOST_PARTS = 20
_SECTION_TOKENS = 600
_PAGE = Path(__file__).with_name("report.html")
_NUMBER = re.compile(r"\[(\d{1,9})\]")
Progress = Callable[[str, int, int], object]  # what is done, calls made, calls to make


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
    sources: tuple[Passage, ...]  # that are cited, under the numbers that they have in the report
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
        from jinja2 import Environment

        sections = [(one, (one.text or one.problem).split("\n\n")) for one in self.sections]
        template = Environment(autoescape=True, trim_blocks=True).from_string(_PAGE.read_text(encoding="utf-8"))
        return template.render(report=self, sections=sections, place=source_place, cut=_NUMBER.split)


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
    records: list[StageRecord] = field(default_factory=list)
    sources: dict[tuple[str, int | None, int, int], Passage] = field(default_factory=dict)

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
        draft, review = (
            WriteText(chat("report", name), name, reads, self.topic, _SECTION_TOKENS, seed, prompts.get(place), style)
            for name, reads, place, style in (
                ("section", ("question.text", "passages"), f"section_{self.style}", self.style),
                ("review", ("question.text", "raw_text"), "review", self.style),
            )
        )
        sections: list[ReportSection] = []
        for title in titles:
            drafted = self._call(draft, self._with_passages(title))
            if drafted.failure:
                sections.append(ReportSection(title, "", "", problem=f"no draft: {drafted.failure.reason}"))
                continue
            reviewed = self._call(review, replace(drafted, stages=()))
            text, rejected = self._cited(reviewed.raw_text or "", drafted)
            problem = f"the draft stands, as its review failed: {reviewed.failure.reason}" if reviewed.failure else ""
            unreviewed = self._cited(drafted.raw_text or "", drafted)[0]
            sections.append(ReportSection(title, unreviewed, text, rejected, problem))
        cited = sorted(self.sources.values(), key=lambda one: one.number)
        tokens = sum(record.tokens_out for record in self.records)
        cost = sum(record.cost_usd for record in self.records)
        return WrittenReport(self.topic, self.style, tuple(sections), tuple(cited), len(self.records), tokens, cost)

    def _cited(self, text: str, trace: Trace) -> tuple[str, tuple[str, ...]]:
        """Return a text with the numbers of the report's sources in place of those of its passages."""
        by_number = {passage.number: passage for passage in trace.passages}
        accepted, rejected = checked_citations(_NUMBER.findall(text), trace.passages)
        numbers: dict[int, int] = {}
        for citation in accepted:
            passage = by_number[citation.number]
            span = (passage.source, passage.page, passage.start, passage.end)
            self.sources.setdefault(span, replace(passage, number=len(self.sources) + 1))
            numbers[citation.number] = self.sources[span].number
        text = _NUMBER.sub(lambda found: f"[{numbers[n]}]" if (n := int(found[1])) in numbers else "", text)
        return re.sub(r"[ \t]+([.,;])", r"\1", text), rejected

    def _with_passages(self, text: str) -> Trace:
        asked = replace(self.asker, text=text)
        (trace,) = self.pipeline.run([asked], answer=(), read=lambda _: {"passages"})
        return Trace(asked, passages=trace.passages)  # that has found nothing else yet

    def _call(self, stage: base.Stage, trace: Trace) -> Trace:
        self.progress(f"{stage.name}: {trace.question.text}", self.done, self.total)
        (after,) = run_stage(stage, [trace], self.pipeline.memory)
        self.records.append(after.stages[-1])
        self.done += 1
        self.progress(stage.name, self.done, self.total)
        return after


def source_place(one: Passage) -> str:
    """Return the file of a source with its page."""
    return one.source if one.page is None else f"{one.source}, page {one.page}"
