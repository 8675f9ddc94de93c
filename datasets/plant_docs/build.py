"""Build the PDFs of the plant_docs corpus from the sources beside this script.

A source is a text file: a YAML head between two `---` lines, which lists the documents made from it with their
values, and a body in a small Markdown-like notation in which `${name}` stands for a value. One source with several
documents gives the manuals of sibling machines, or the revisions of one document.

Notation, one block a line: `# ` and `## ` headings, `1. ` steps, `- ` items, `! ` warnings, `|` table rows (the first
row of a run is its head), `===` a page break; every other line is a paragraph.
"""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pymupdf
import yaml

HERE = Path(__file__).parent
COMPANY = "Orrindale Friction Products Ltd - Marrowby Works"
WIDTH, HEIGHT = 595, 842
LEFT, RIGHT, TOP, BOTTOM = 64.0, 531.0, 88.0, 776.0
SIZE, LEAD, CELL_SIZE, CELL_LEAD, PAD = 11.0, 16.2, 10.0, 13.2, 4.5
FONTS = {False: pymupdf.Font("helv"), True: pymupdf.Font("hebo")}
GREY, LINE = (0.9, 0.9, 0.9), (0.4, 0.4, 0.4)
MARKS = {"===": "break", "# ": "h1", "## ": "h2", "- ": "item", "! ": "warning", "|": "table"}
NEEDED = ("path", "number", "title", "revision", "date", "owner", "approved", "supersedes")

Row = tuple[str, ...]


class Block(NamedTuple):
    """One piece of a body: a paragraph, heading, step, item, warning, table or page break."""

    kind: str
    text: str = ""
    rows: tuple[Row, ...] = ()


def kind_of(line: str) -> str:
    """The kind of block a source line belongs to."""
    if not line.strip():
        return "blank"
    if re.match(r"\d+\. ", line):
        return "step"
    return next((kind for mark, kind in MARKS.items() if line.startswith(mark)), "text")


def cells(line: str) -> Row:
    """The cells of a table row."""
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def parse(body: str) -> Iterator[Block]:
    """The blocks of a body, in order."""
    for kind, run in groupby(body.splitlines(), kind_of):
        lines = list(run)
        if kind == "table":
            yield Block(kind, rows=tuple(cells(line) for line in lines))
        elif kind != "blank":
            strip = r"^(#+|-|!) "
            yield from (Block(kind, re.sub(strip, "", line).strip()) for line in lines)


def load(path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """The documents of one source: their values and their bodies with the values put in."""
    _, head, body = path.read_text(encoding="utf-8").split("---\n", 2)
    for values in yaml.safe_load(head)["documents"]:
        missing = [name for name in NEEDED if name not in values]
        if missing:
            raise ValueError(f"{path.name} has a document without {', '.join(missing)}.")
        filled = string.Template(body).substitute({name: str(value).strip() for name, value in values.items()})
        odd = sorted({char for char in filled if ord(char) > 255})
        if odd:
            raise ValueError(f"{path.name} has characters that the base fonts cannot show: {' '.join(odd)}.")
        yield values, filled


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width of a text in points."""
    return float(FONTS[bold].text_length(text, fontsize=size))


def wrap(text: str, width: float, size: float, bold: bool = False) -> list[str]:
    """The lines of a text broken at spaces to fit a width."""
    lines = [""]
    for word in text.split():
        if text_width(word, size, bold) > width:
            raise ValueError(f"The word '{word}' is wider than its column.")
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, size, bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def column_widths(rows: tuple[Row, ...]) -> list[float]:
    """Column widths that share the page by what the cells hold, none narrower than its longest word."""
    total = RIGHT - LEFT
    columns = list(zip(*rows, strict=True))
    least = [max(text_width(w, CELL_SIZE, True) for c in col for w in c.split() or [""]) for col in columns]
    least = [width + 2 * PAD + 1 for width in least]
    wanted = [min(max(text_width(cell, CELL_SIZE, True) for cell in col), 230.0) + 2 * PAD for col in columns]
    spare = [max(want - low, 1.0) for want, low in zip(wanted, least, strict=True)]
    left_over = total - sum(least)
    return [low + left_over * share / sum(spare) for low, share in zip(least, spare, strict=True)]


class Writer:
    """Lays blocks out on A4 pages from top to bottom."""

    def __init__(self, values: dict[str, Any]) -> None:
        """Start a document with its first page and its title block."""
        self.values = values
        self.pdf = pymupdf.open()
        self.y = TOP
        self.shape: Any = None
        self.new_page()
        self.title_block()

    def new_page(self) -> None:
        """Close the page at hand and start the next one with its header."""
        if self.shape:
            self.shape.commit()
        self.shape = self.pdf.new_page(width=WIDTH, height=HEIGHT).new_shape()
        self.put(LEFT, 46, COMPANY, 8.5, True)
        self.put(LEFT, 59, f"{self.values['number']}  {self.values['title']}", 8.5)
        self.rule(65)
        self.y = TOP

    def put(self, x: float, y: float, text: str, size: float = SIZE, bold: bool = False) -> None:
        """Write one line of text."""
        self.shape.insert_text((x, y), text, fontsize=size, fontname="hebo" if bold else "helv")

    def rule(self, y: float) -> None:
        """Draw a rule over the width of the text."""
        self.shape.draw_line((LEFT, y), (RIGHT, y))
        self.shape.finish(color=LINE, width=0.6)

    def room(self, height: float) -> bool:
        """Start a new page where the height does not fit; True where one was started."""
        if self.y + height <= BOTTOM:
            return False
        self.new_page()
        return True

    def title_block(self) -> None:
        """The revision block at the head of page 1."""
        value = {name: str(self.values[name]) for name in NEEDED}
        self.lines(value["title"], 14.0, True, 20.0)
        self.row(("Document", value["number"], "Revision", value["revision"]), [76, 165, 76, 150], 0)
        self.row(("Owner", value["owner"], "Issued", value["date"]), [76, 165, 76, 150], 0)
        self.row(("Approved", value["approved"], "Supersedes", value["supersedes"]), [76, 165, 76, 150], 0)
        self.y += 8

    def lines(self, text: str, size: float, bold: bool = False, lead: float = LEAD, indent: float = 0) -> None:
        """Write wrapped text; a hanging label before the first space stands left of the indent."""
        label, rest = text.split(" ", 1) if indent else ("", text)
        for number, line in enumerate(wrap(rest, RIGHT - LEFT - indent, size, bold)):
            self.room(lead)
            if indent and number == 0:
                self.put(LEFT, self.y + size, label, size, bold)
            self.put(LEFT + indent, self.y + size, line, size, bold)
            self.y += lead

    def row(self, row: Row, widths: list[float], head: int) -> None:
        """Draw one table row; `head` 1 for a head row, which is grey and bold."""
        wrapped = [wrap(cell, w - 2 * PAD, CELL_SIZE, bool(head)) for cell, w in zip(row, widths, strict=True)]
        height = max(map(len, wrapped)) * CELL_LEAD + 6.5
        x = LEFT
        for text, width in zip(wrapped, widths, strict=True):
            self.shape.draw_rect((x, self.y, x + width, self.y + height))
            self.shape.finish(color=LINE, fill=GREY if head else None, width=0.5)
            for number, line in enumerate(text):
                self.put(x + PAD, self.y + 12.0 + number * CELL_LEAD, line, CELL_SIZE, bool(head))
            x += width
        self.y += height

    def table(self, rows: tuple[Row, ...]) -> None:
        """Draw a table, its head repeated on every page it runs over."""
        widths = column_widths(rows)
        self.room(4 * CELL_LEAD)
        self.row(rows[0], widths, 1)
        for row in rows[1:]:
            deepest = max(len(wrap(cell, w - 2 * PAD, CELL_SIZE)) for cell, w in zip(row, widths, strict=True))
            if self.room(deepest * CELL_LEAD + 6.5):
                self.row(rows[0], widths, 1)
            self.row(row, widths, 0)
        self.y += 7

    def warning(self, text: str) -> None:
        """Write a warning in a frame."""
        wrapped = wrap(f"WARNING: {text}", RIGHT - LEFT - 16, SIZE, True)
        height = len(wrapped) * LEAD + 8
        self.room(height)
        self.shape.draw_rect((LEFT, self.y, RIGHT, self.y + height))
        self.shape.finish(color=(0, 0, 0), fill=(0.96, 0.96, 0.96), width=1.2)
        for number, line in enumerate(wrapped):
            self.put(LEFT + 8, self.y + 4 + SIZE + number * LEAD, line, SIZE, True)
        self.y += height + 6

    def heading(self, text: str, size: float) -> None:
        """Write a heading that stays with what follows it."""
        self.room(size + 4 * LEAD)
        self.y += 5
        self.lines(text, size, True, size + 5)

    def add(self, block: Block) -> None:
        """Write one block."""
        if block.kind == "table":
            self.table(block.rows)
        elif block.kind == "break":
            self.new_page()
        elif block.kind == "warning":
            self.warning(block.text)
        elif block.kind in ("h1", "h2"):
            self.heading(block.text, 13.0 if block.kind == "h1" else 11.5)
        else:
            text = f"- {block.text}" if block.kind == "item" else block.text
            self.lines(text, SIZE, indent={"step": 22.0, "item": 13.0}.get(block.kind, 0.0))
            self.y += 2.5 if block.kind != "text" else 4.5

    def save(self, path: Path) -> None:
        """Write the footers, which need the number of pages, and save the same bytes every time."""
        self.shape.commit()
        for number, page in enumerate(self.pdf, start=1):
            text = f"{self.values['number']}  Rev {self.values['revision']}  {self.values['date']}"
            page.insert_text((LEFT, 808), text, fontsize=8, fontname="helv")
            page.insert_text((RIGHT - 62, 808), f"Page {number} of {len(self.pdf)}", fontsize=8, fontname="helv")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.pdf.set_metadata({"title": f"{self.values['number']} {self.values['title']}", "author": COMPANY})
        self.pdf.save(path, garbage=3, deflate=True, no_new_id=True, use_objstms=1)
        self.pdf.close()


def build(out_dir: Path) -> list[Path]:
    """Build every PDF below `out_dir` and return the paths written."""
    built = []
    for source in sorted((HERE / "sources").glob("*.md")):
        for values, body in load(source):
            writer = Writer(values)
            for block in parse(body):
                writer.add(block)
            built.append(out_dir / values["path"])
            writer.save(built[-1])
    return built


if __name__ == "__main__":
    try:
        print(f"Built {len(build(HERE / 'corpus'))} PDFs.")
    except (OSError, ValueError, KeyError, yaml.YAMLError) as error:
        sys.exit(f"The PDFs could not be built: {error}")
