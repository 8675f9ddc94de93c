"""A table of texts, written as plain text, Markdown or LaTeX; a data frame that shows itself as one for readers."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill

import pandas as pd

from rag_lab._kit.wording import DASH, MINUS, text_table
from rag_lab.redaction import visible

_WIDTH = 110  # of lines of prose below a table
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    MINUS: "$-$",
    DASH: "--",
    "…": r"\ldots{}",
} | {mark: f"\\{mark}" for mark in "&%$#_{}"}


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a header, and rows of as many texts.

    The first `names` columns are names and the last `words` columns are prose; those between are numbers.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    words: int = 0

    @property
    def is_number(self) -> tuple[bool, ...]:
        """Which columns hold numbers and so stand to the right."""
        last = len(self.header) - self.words
        return tuple(self.names <= index < last for index in range(len(self.header)))

    def only(self, *header: str) -> "Table":
        """Return these columns alone, in the order of the table."""
        places = [place for place, name in enumerate(self.header) if name in header]
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        last = len(self.header) - self.words
        counts = (sum(place < self.names for place in places), sum(place >= last for place in places))
        return Table(self.title, tuple(self.header[place] for place in places), rows, *counts)

    def to_text(self) -> str:
        """Return the title above aligned columns."""
        rows = [[" ".join(cell.split()) for cell in row] for row in self.rows]
        return f"{self.title}\n{text_table(self.header, rows)}"

    def with_notes(self, notes: Iterable[str] = ()) -> str:
        """Return the table for a terminal, its cells as they are, and below it what is to be known of it."""
        below = [fill(f"- {note}", _WIDTH, subsequent_indent="  ") for note in notes]
        return "\n".join([f"{self.title}:", text_table(self.header, self.rows), *below])

    def to_markdown(self) -> str:
        """Return a table as GitHub's Markdown writes it."""
        escaped = [[escape_markdown(cell) for cell in row] for row in (self.header, *self.rows)]
        return f"**{escape_markdown(self.title)}**\n\n{markdown_rows(escaped, self.is_number)}"

    def to_latex(self) -> str:
        """Return a `table` with booktabs' rules; the document needs `\\usepackage{booktabs}`."""
        columns = "".join("r" if right else "l" for right in self.is_number)
        header, *rows = [rf"{' & '.join(map(escape_latex, row))} \\" for row in (self.header, *self.rows)]
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(self.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            header,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines)


def markdown_rows(rows: Sequence[Sequence[str]], is_number: Sequence[bool]) -> str:
    """Return rows of Markdown, the first of which is the header, as a table."""
    header, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([header, f"|{'|'.join('--:' if right else ':--' for right in is_number)}|", *others])


def escape_latex(text: str) -> str:
    """Return `text` on one line so that LaTeX prints it as it is."""
    return "".join(_LATEX.get(character, character) for character in " ".join(visible(text).split()))


def escape_markdown(text: str) -> str:
    """Return `text` on one line so that nothing in it is read as Markdown or HTML."""
    line = " ".join(visible(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", line)


class ShownFrame(pd.DataFrame):
    """A frame to compute with, in which every number is as it was; it is shown rounded and beside what it means.

    Whatever pandas makes of it, be it a copy, a row or a part, is pandas' own again and shows all of its numbers.
    """

    _html: Callable[[], str]
    _text: Callable[[], str]
    _metadata = ["_html", "_text"]  # noqa: RUF012 - pandas' way of naming attributes that are no columns

    def _repr_html_(self) -> str:
        return self._html()

    def __repr__(self) -> str:
        return self._text()


def shown_frame(frame: pd.DataFrame, html: Callable[[], str], text: Callable[[], str]) -> ShownFrame:
    """Return `frame` so that it shows itself by these; they are called where it is shown, and not before."""
    shown = ShownFrame(frame)
    shown._html, shown._text = html, text
    return shown
