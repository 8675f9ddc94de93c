"""PDF files with their tables as Markdown, where PyMuPDF finds the lines of one; the rest as `load_pdf` reads it.

PyMuPDF says where the cells are; the words in them are put together here, since its own reading of a cell loses spaces
with some fonts. A word stands in one cell or outside the tables: each comes once.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_lab.corpus.load import pdf_text
from rag_lab.corpus.load.delimited import markdown_table
from rag_lab.corpus.load.loader import Loaded


@dataclass(frozen=True, slots=True)
class _Word:
    """A word, where the reader of the page sees it."""

    box: pdf_text.Box
    text: str
    line: tuple[int, int]  # see `Line.number`


@dataclass(frozen=True, slots=True)
class _Table:
    markdown: str
    words: frozenset[int]  # numbers of the words that stand in it


def load_pdf_tables(path: Path, source: str) -> Loaded:
    """Read a PDF as `load_pdf` does, with each table that has ruled or filled cells as Markdown in its place.

    A page with more drawn lines than tables have is read without looking for any, and named in a warning.
    """
    crowded: list[int] = []

    def read(page: Any) -> str:
        if not pdf_text.has_too_many_rules(page):
            return _page_text(page)
        crowded.append(page.number + 1)
        return pdf_text.page_text(page)

    loaded = pdf_text.load_pdf(path, source, read)
    if not crowded:
        return loaded
    warning = f"{pdf_text.named_pages(crowded)} more drawn lines than tables have: read without looking for tables."
    return replace(loaded, warnings=(*loaded.warnings, warning))


def _page_text(page: Any) -> str:
    """Return the text with each table where the first line stands that has a word in it."""
    import pymupdf

    lines = pdf_text.page_lines(page)
    found = page.get_text("words", flags=pdf_text.text_flags())
    seen = _uncropped(page)  # tables are found where the reader sees them, words where the file draws them
    words = [_Word(tuple(pymupdf.Rect(word[:4]) * seen), word[4], word[5:7]) for word in found]
    waiting = dict(enumerate(_tables(page, words)))
    owner = {word: number for number, table in waiting.items() for word in table.words}
    of_line = defaultdict(list)
    for number, word in enumerate(words):
        of_line[word.line].append(number)
    blocks: list[str] = []
    run: list[pdf_text.Line] = []
    for line in lines:
        of_this = of_line[line.number]
        for number in sorted({owner[word] for word in of_this if word in owner} & waiting.keys()):
            blocks += [pdf_text.join(run), waiting.pop(number).markdown]
            run = []
        rest = [words[word].text for word in of_this if word not in owner]
        if rest:
            run.append(line if len(rest) == len(of_this) else replace(line, text=" ".join(rest)))
    return "\n\n".join(block for block in [*blocks, pdf_text.join(run)] if block)


def _uncropped(page: Any) -> Any:
    """Show the whole of a turned page, and return the matrix from a word's place to where it is seen then.

    PyMuPDF looks for tables of a turned page in the wrong places where some of it is cropped.
    """
    import pymupdf

    if not page.rotation:
        return pymupdf.Identity
    left, top = page.cropbox.x0 - page.mediabox.x0, page.cropbox.y0
    whole = " ".join(f"{place:.3f}" for place in page.mediabox)
    page.parent.xref_set_key(page.xref, "CropBox", f"[{whole}]")
    return pymupdf.Matrix(1, 0, 0, 1, left, top) * page.rotation_matrix


def _tables(page: Any, words: Sequence[_Word]) -> Iterator[_Table]:
    """Yield the tables with more than one row and column; what stands in one of them stands in no later one."""
    free = dict(enumerate(words))
    # PyMuPDF's model of a page's layout takes seconds a page and minutes on a drawing; ruled tables need none.
    for table in page.find_tables(use_layout=False).tables:
        rows = table.rows
        places = {number: place for number, word in free.items() if (place := _place(rows, word.box))}
        cells: dict[tuple[int, int], list[str]] = defaultdict(list)
        for number, place in places.items():
            cells[place].append(words[number].text)
        # The part of a merged cell that belongs to its neighbour is "".
        texts = [[" ".join(cells[n, column]) for column in range(len(row.cells))] for n, row in enumerate(rows)]
        lines, n_too_long = markdown_table(texts)
        if len(lines) > 2 and len(rows[0].cells) > 1 and not n_too_long:
            yield _Table("\n".join(lines), frozenset(places))
            free = {number: word for number, word in free.items() if number not in places}


def _place(rows: Sequence[Any], box: pdf_text.Box) -> tuple[int, int] | None:
    """Return row and column of the first cell that holds the middle of a box, None where none does."""
    for number, row in enumerate(rows):
        if _is_inside(row.bbox, box):
            for column, cell in enumerate(row.cells):
                if cell and _is_inside(cell, box):
                    return number, column
    return None


def _is_inside(box: pdf_text.Box, other: pdf_text.Box) -> bool:
    x, y = (other[0] + other[2]) / 2, (other[1] + other[3]) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]
