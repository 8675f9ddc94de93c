"""Pages of plain pieces, once as HTML for a notebook and once as text for a terminal of 100 columns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

from markupsafe import Markup

from rag_lab._kit.wording import text_table
from rag_lab.redaction import shown
from rag_lab.report.page.templates import asset, render
from rag_lab.report.table import Table

WIDTH = 100
_NAMES = 16  # columns of the names


@dataclass
class TextView:
    """Lines that are added one after the other; what there is nothing to say of is left out."""

    _lines: list[str] = field(default_factory=list)

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Add each fact that has a text."""
        for name, text in facts:
            self.fact(name, text)

    def fact(self, name: str, text: str) -> None:
        """Add what is said of `name`, broken into lines; nothing where `text` is empty."""
        lines = wrap(one_line(text), WIDTH - _NAMES)
        self._lines += [f"{name if not number else '':{_NAMES}}{line}" for number, line in enumerate(lines)]

    def block(self, title: str, text: str = "") -> None:
        """Add a sentence, or a title, and below it lines as they are."""
        self._lines += wrap(one_line(title), WIDTH)
        self._lines += [f"  {one}" if len(one) < WIDTH - 1 else f"  {one[: WIDTH - 3]}…" for one in text.splitlines()]

    def text(self) -> str:
        """Return all lines; no secret and no control character stands in them."""
        return shown("\n".join(self._lines))


def quoted(place: str, quote: str | None) -> str:
    """Write a place with the words that stand there, where they are known."""
    return f"{place} “{quote}”" if quote else place


def one_line(text: str) -> str:
    """Return `text` on one line as it is shown: a control character is longer when it can be seen."""
    return " ".join(shown(text).split())


@dataclass(frozen=True)
class Page:
    """What a template draws, and the text that stands for it."""

    template: str
    values: Mapping[str, Any]
    text: TextView

    def to_html(self) -> str:
        """Return the HTML; everything from outside is escaped."""
        return render(self.template, style=asset("card.css"), **self.values)

    def to_text(self) -> str:
        """Return the text, without secrets and control characters."""
        return self.text.text()


@dataclass(frozen=True, slots=True)
class Box:
    """A stage as it is drawn."""

    name: str
    said: str
    is_on: bool = True
    changes: tuple[str, ...] = ()  # in which it differs from where it came from


@dataclass(frozen=True, slots=True)
class View:
    """What is told of something; facts of which there is nothing to say are left out."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    boxes: tuple[Box, ...] = ()
    tables: tuple[Table, ...] = ()
    drawn: tuple[tuple[str, Markup, tuple[str, ...]], ...] = ()  # title, SVG, and the lines that stand for it in text
    notes: tuple[str, ...] = ()
    folded: tuple[tuple[str, str], ...] = ()  # summary and text as it is written; in a notebook alone

    def to_html(self) -> str:
        """Return the HTML; everything from outside is escaped."""
        return render("view.html", view=self, style=asset("card.css"), script=asset("sort.js"))

    def to_text(self) -> str:
        """Return the text, without secrets and control characters."""
        text = TextView()
        text.block(self.title)
        for box in self.boxes:
            text.fact(box.name, "off" if not box.is_on else box.said)
        text.facts(self.facts)
        for table in self.tables:
            rows = [[one_line(cell) for cell in row] for row in table.rows]
            text.block(table.title, text_table(table.header, rows, WIDTH - 2))
        for title, _, lines in self.drawn:
            text.block(title, "\n".join(lines))
        for note in self.notes:
            text.block(note)
        return text.text()
