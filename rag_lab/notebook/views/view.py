"""A page of plain pieces, once as HTML and once as text: a title, facts, tables, and what stands folded."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from rag_lab._kit.text_table import text_table
from rag_lab.notebook.views.text_view import WIDTH, TextView, one_line
from rag_lab.report.page.templates import asset, render
from rag_lab.report.tables.table import Table


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
        """Return the page; everything from outside is escaped."""
        return render("view.html", view=self, style=asset("card.css"), script=asset("sort.js"))

    def to_text(self) -> str:
        """Return the lines of a terminal of 100 columns."""
        text = TextView()
        text.line(self.title)
        for box in self.boxes:
            text.fact(box.name, "off" if not box.is_on else box.said)
        for name, said in self.facts:
            text.fact(name, said)
        for table in self.tables:
            rows = [[one_line(cell) for cell in row] for row in table.rows]
            text.block(table.title, text_table(table.header, rows, WIDTH - 2))
        for title, _, lines in self.drawn:
            text.block(title, "\n".join(lines))
        for note in self.notes:
            text.line(note)
        return text.text()
