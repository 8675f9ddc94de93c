"""Where all that the variants did with the questions is too much for the report's page: a page for each question.

They lie beside the report, need no scripts, and ask the network for nothing.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from markupsafe import Markup

from rag_lab._kit.whole_file import whole_file
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.questions.question_cards import QuestionCard, cards
from rag_lab.errors import RagLabError
from rag_lab.records import Question
from rag_lab.redaction import shown
from rag_lab.report.page.anchors import anchors
from rag_lab.report.page.templates import asset, macro, render, script_digest

MOST_CHARS = 4_000_000  # of what stands behind the list in the report's own page
_PAGES = "q-*.html"


def bodies_or_pages(
    comparison: Comparison, folder: Path, report: str, most_chars: int | None = MOST_CHARS
) -> dict[str, Markup]:
    """Return what every variant did with each question, or write it to `folder`, a page a question, and return nothing.

    Args:
        comparison: the run.
        folder: where pages are written; those of an earlier report are removed from it.
        report: the file name of the report, beside `folder`.
        most_chars: from how many characters on they are written; None is never.

    Raises:
        RagLabError: if a page cannot be written.
    """
    bodies: dict[str, Markup] = {}
    pages: _Pages | None = None
    size = 0
    for card in cards(comparison):
        name = card.question.question_id
        body = card_body(card, comparison.quality_metrics)
        size += len(body)
        if pages is None and (most_chars is None or size <= most_chars):
            bodies[name] = body
            continue
        if pages is None:
            pages = _Pages(comparison, folder, report)
            for earlier in list(bodies):
                pages.write(comparison.asked[earlier], bodies.pop(earlier))
        pages.write(card.question, body)
    _remove_others(folder, set() if pages is None else set(pages.names.values()))
    return bodies


def card_body(card: QuestionCard, metrics: tuple[str, ...]) -> Markup:
    """Return what every variant did with one question."""
    return macro("card.html", "body")(card, metrics, asked=False)


class _Pages:
    """Writes pages that differ in their title and what they say of their question; all else is rendered once."""

    def __init__(self, comparison: Comparison, folder: Path, report: str) -> None:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _no_room(folder, error) from None
        self.names = anchors(comparison.asked)
        self._folder, self._report, self._run = folder, report, comparison.run.name
        self._order = list(self.names.values())
        self._place = {anchor: place for place, anchor in enumerate(self._order)}
        script = asset("pair.js")
        slots = {name: f"{name}{uuid.uuid4().hex}" for name in ("title", "top", "body")}
        page = render(
            "question_page.html",
            c=comparison,
            style=asset("card.css") + asset("style.css") + asset("questions.css"),
            script=script,
            script_digest=script_digest(script),
            **slots,
        )
        head, rest = page.split(slots["title"])
        between, rest = rest.split(slots["top"])
        form, foot = rest.split(slots["body"])
        self._around = (head, between, form, foot)
        self._apart = f" {uuid.uuid4().hex} "  # secrets are looked for in all that a page has of its own at once

    def write(self, question: Question, body: Markup) -> None:
        """Write the page of a question."""
        anchor = self.names[question.question_id]
        place = self._place[anchor]
        before = self._order[place - 1] if place else ""
        after = self._order[place + 1] if place + 1 < len(self._order) else ""
        report = f"../{self._report}#{anchor}"
        top = macro("card.html", "content")(question, self._run, report, before, after)
        title = Markup("{}: {}").format(question.question_id, self._run)
        head, between, form, foot = self._around
        named, begun, told = shown(self._apart.join((title, top, body))).split(self._apart)
        text = head + named + between + begun + form + told + foot
        path = self._folder / f"{anchor}.html"
        try:
            with whole_file(path) as partial:
                partial.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _no_room(path, error) from None


def _no_room(path: Path, error: OSError) -> RagLabError:
    return RagLabError(f"Cannot write {path}: {error.strerror}; make room or move away what is there.")


def _remove_others(folder: Path, kept: set[str]) -> None:
    """Remove pages of an earlier report, which are known by their name, and the folder once it is empty."""
    if not folder.is_dir():
        return
    for path in folder.glob(_PAGES):
        if path.stem not in kept:
            path.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()
