"""CSV, TSV and spreadsheets (XLSX, XLSM, XLS, ODS) as Markdown tables, and the archives that office files are.

A row is one line that begins and ends with a bar, and no splitter cuts such a line. Tables within documents have cells
that hold paragraphs, take several columns or rows, or frame a whole page. A spreadsheet is a document a sheet, the
number of its tab as the page, its name as the section.

The library holds a sheet as a rectangle around its cells: two cells of a small file can take all memory, which ends the
process that reads it. Office files are ZIP archives: what is checked before one is unpacked stands here, and how its
parts are read.
"""

import csv
import datetime
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from rag_lab.corpus.load.loader import MAX_FILE_CHARS, Loaded, LoadError, parsing, read_text
from rag_lab.records import Document

_MAX_COLUMNS = 16_384  # of a row with merged cells, as in Excel

Block = tuple[str, str]  # a paragraph, heading or table: as a part of a cell's line, and as it stands by itself

MAX_ROW_CHARS = 20_000  # what is longer is no row that anybody reads
_BAR_CHARS = 3  # between two cells
MAX_CELLS = MAX_FILE_CHARS // _BAR_CHARS  # an empty one takes its bar too: more are more text than a file may hold
_DELIMITERS = ",;\t|"
_NONE = "\x1f"  # what a table of one column is parted by: no text holds it
_DECLARED = re.compile(r'"?sep=([^"\n])"?\n', re.IGNORECASE)  # Excel's own first line
_DIVIDING_COMMA = re.compile(r"(?<!\d),(?! )|,(?![\d ])")  # neither within a number nor within a sentence
_SNIFFED_CHARS = 20_000
_MAX_CELL_CHARS = 2**31 - 1  # a longer row is left out by its length, not an error


@dataclass
class CellBudget:
    """How many cells the tables of one file may still take, the empty ones that fill up a short row included."""

    left: int = MAX_CELLS

    def spend(self, n_rows: int, n_columns: int) -> None:
        """Take the cells of a table, before it is written."""
        self.left -= n_rows * n_columns
        if self.left < 0:
            raise LoadError(
                f"the tables take more than {MAX_CELLS:,} cells, the empty ones that fill up short rows and stand for "
                "merged cells included; split the file or shorten the widest rows."
            )


def markdown_table(rows: Iterable[Sequence[str]], budget: CellBudget | None = None) -> tuple[list[str], int]:
    """Return the lines of a table whose first row is its header, and how many rows were too long and left out.

    Cells lose line ends and surplus spaces; empty rows and columns are left out. `budget` is that of the whole file.
    """
    cleaned = [[_cell(cell) for cell in row] for row in rows]
    filled = [row for row in cleaned if any(row)]
    kept = [row for row in filled if not is_too_long(row)]
    columns = sorted({number for row in kept for number, cell in enumerate(row) if cell})
    (budget or CellBudget()).spend(len(kept), len(columns))
    shown = [[row[number] if number < len(row) else "" for number in columns] for row in kept]
    if shown:
        shown.insert(1, ["---"] * len(columns))
    return [f"| {' | '.join(row)} |" for row in shown], len(filled) - len(kept)


def is_too_long(cells: Iterable[str]) -> bool:
    """Return whether a row of cleaned cells is left out of a table for its length."""
    return sum(len(cell) + _BAR_CHARS for cell in cells if cell) > MAX_ROW_CHARS


def too_long(n_rows: int, where: str = "") -> str:
    """Return the warning for rows that were left out."""
    rows = "row" if n_rows == 1 else "rows"
    return f"{where}{n_rows} {rows} of more than {MAX_ROW_CHARS:,} characters left out; shorten the cells."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


@dataclass(slots=True)
class Cell:
    """A cell: what it holds, and how many columns and rows it takes."""

    blocks: list[Block] = field(default_factory=list)
    columns: int = 1
    rows: int = 1

    @property
    def text(self) -> str:
        """What it holds as one line."""
        return " ".join(line for line, _ in self.blocks)


_EMPTY = Cell()


def table_blocks(rows: Iterable[Sequence[Cell]], budget: CellBudget) -> list[str]:
    """Return the blocks that a table makes, one in Markdown as a rule; one of a single column is a mere frame."""
    placed = [(row, [cell.text for cell in row]) for row in _spread(rows, budget)]
    columns = {number for _, texts in placed for number, text in enumerate(texts) if text}
    blocks: list[str] = []
    for is_frame, some in groupby(placed, key=lambda pair: len(columns) == 1 or is_too_long(map(_cell, pair[1]))):
        if is_frame:
            blocks += [alone for row, _ in some for cell in row for _, alone in cell.blocks]
        elif lines := markdown_table((texts for _, texts in some), budget)[0]:
            blocks.append("\n".join(lines))
    return blocks


def _spread(rows: Iterable[Sequence[Cell]], budget: CellBudget) -> Iterator[list[Cell]]:
    """Yield the rows with an empty cell wherever a cell before or above reaches, so that each stands in its column."""
    taken: dict[int, int] = {}  # column -> number of the first row that no cell above reaches
    for number, row in enumerate(rows):
        placed: list[Cell] = []
        column = 0
        for cell in row:
            while taken.get(column, 0) > number:
                column += 1
            budget.spend(1, column - len(placed))
            placed += [_EMPTY] * (column - len(placed)) + [cell]
            end = max(column + 1, min(column + cell.columns, _MAX_COLUMNS))
            if cell.rows > 1:
                budget.spend(1, end - column)
                taken.update(dict.fromkeys(range(column, end), number + cell.rows))
            column = end
        yield placed


def load_delimited(path: Path, source: str) -> Loaded:
    """Read a table of separated values; the separator is found out or declared, the first row is the header."""
    text, warnings = read_text(path)
    limit = csv.field_size_limit(_MAX_CELL_CHARS)
    try:
        with parsing("table"):
            if declared := _DECLARED.match(text):
                rows = _parsed(text[declared.end() :], declared[1])
            else:
                rows = _parsed(text, "\t" if path.suffix.lower() == ".tsv" else _delimiter(text))
    finally:
        csv.field_size_limit(limit)
    lines, n_too_long = markdown_table(rows)
    if not lines:
        raise LoadError(too_long(n_too_long) if n_too_long else "the table is empty; fill it or remove the file.")
    if n_too_long:
        warnings = (*warnings, too_long(n_too_long))
    return Loaded((Document(source, None, "\n".join(lines)),), warnings)


def _parsed(text: str, delimiter: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))


def _delimiter(text: str) -> str:
    """Return the separator that most of the first rows have, and have equally often."""
    ranks: dict[str, tuple[int, bool, int]] = {}
    n_sampled: dict[str, int] = {}
    for delimiter in _DELIMITERS:
        rows = _parsed(text[:_SNIFFED_CHARS], delimiter)
        if len(text) > _SNIFFED_CHARS and len(rows) > 1:  # the end of the sample cuts the last one
            rows.pop()
        n_sampled[delimiter] = sum(map(bool, rows))
        # The most frequent number of columns beyond one, after the number of rows that have it.
        widths = Counter(len(row) for row in rows if len(row) > 1)
        n_rows, n_columns = max(((n, width) for width, n in widths.items()), default=(0, 0))
        is_sure = delimiter != "," or _DIVIDING_COMMA.search(text, 0, _SNIFFED_CHARS) is not None
        ranks[delimiter] = n_rows, is_sure, n_columns
    best = max(_DELIMITERS, key=lambda delimiter: ranks[delimiter])
    n_rows, is_sure, _ = ranks[best]
    return best if n_rows and (is_sure or 2 * n_rows > n_sampled[best]) else _NONE


_MAX_PARTS = 20_000
_MAX_BYTES = 2**30  # of all parts, pictures included, unpacked
_MAX_PART_BYTES = 100 * 2**20  # of a part, unpacked
_MAX_LIST_BYTES = 10 * 2**20  # of one that lists other parts: each entry of it becomes an object
_MAX_TAGS = 3_000_000  # and attributes, of all parts that are parsed: a thousand pages of text have fewer
_LISTS = (".rels", "[Content_Types].xml")
_MEDIA_SHRINK = 5  # pictures and films are packed already and shrink less than this; text shrinks more
_STRICT = re.compile(rb"([\"'])http://purl\.oclc\.org/ooxml/(\w{1,40})/(\w{1,40}(?:/\w{1,40})?)\1")
_USUAL = rb"\1http://schemas.openxmlformats.org/\2/2006/\3\1"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_ZIP, _OLE = b"PK", b"\xd0\xcf\x11\xe0"
_KIND, _OLD_KIND = "spreadsheet", "Excel workbook of the format before 2007"
_MAX_CELLS = 5_000_000  # of the rectangles around what is filled
_UNSTORED = re.compile(rb"<c ([^<>]*)>\s*<f(?:[^<>]*/>|[^<>]*>[^<>]*</f>)\s*(?:(?:<v ?/>|<v></v>)\s*)?</c>")
_ERROR = re.compile(rb"<c [^<>]*t=[\"']e[\"']")
_TEXT = re.compile(rb"t=[\"']str[\"']")  # of a formula: it may be empty, as that of `=""`


class Archive(zipfile.ZipFile):
    """An Office file, and how many XML tags and attributes may be parsed: a small file can hold millions of them."""

    max_tags = _MAX_TAGS
    n_tags = 0  # so far


@contextmanager
def opened_archive(path: Path, kind: str) -> Iterator[Archive]:
    """Open an Office file whose parts are of a size, as declared and kept by `zipfile`, that can be handled."""
    check_kind(path, kind, _ZIP)
    try:
        archive = Archive(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise LoadError(f"the {kind} is damaged and cannot be unpacked; replace or remove it.") from None
    with archive:
        parts = archive.infolist()
        size = sum(part.file_size for part in parts)
        if len(parts) > _MAX_PARTS or size > _MAX_BYTES:
            raise LoadError(f"the {kind} unpacks to {len(parts):,} parts of {size / 2**20:,.0f} MiB; it was not read.")
        if any(part.flag_bits & 1 for part in parts):
            raise LoadError(f"the {kind} is encrypted; save it without a password.")
        for part in parts:  # which of them are parsed is for the file to say, so names promise little
            is_media = "/media/" in part.filename and part.file_size < _MEDIA_SHRINK * part.compress_size
            most = _MAX_LIST_BYTES if part.filename.endswith(_LISTS) else _MAX_BYTES if is_media else _MAX_PART_BYTES
            if (size := part.file_size) > most:
                raise LoadError(f"the {kind} unpacks to {size / 2**20:,.0f} MiB of {part.filename}; it was not read.")
        yield archive


def check_kind(path: Path, kind: str, mark: bytes) -> None:
    """Refuse a file that does not begin with `mark`, and say what it is instead."""
    with path.open("rb") as file:
        head = file.read(8)
    if not head:
        raise LoadError(f"the {kind} is empty (0 bytes); replace or remove it.")
    if head.startswith(mark):
        return
    if head.startswith(_OLE):
        raise LoadError(f"the {kind} is encrypted or of the format before 2007; save it anew, without a password.")
    raise LoadError(f"the file is no {kind} although its name ends so; replace, rename or remove it.")


def parsed_part(archive: Archive, name: str, kind: str) -> Any:
    """Return the root element of an XML part, None where there is none; nothing is expanded or fetched."""
    from lxml import etree

    if name not in archive.namelist():
        return None
    content = archive.read(name)
    archive.n_tags += sum(map(content.count, (b"<", b'="', b"='")))
    if archive.n_tags > archive.max_tags:
        raise LoadError(
            f"the {kind} has more than {archive.max_tags:,} XML tags and attributes; it was not read, split it."
        )
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    with parsing(kind):
        return etree.fromstring(_STRICT.sub(_USUAL, content), parser)


def stated_title(archive: Archive, kind: str) -> str:
    """Return the title that a file says it has, "" where it says none."""
    properties = parsed_part(archive, "docProps/core.xml", kind)
    return str(properties.findtext(_TITLE) or "") if properties is not None else ""


def load_spreadsheet(path: Path, source: str) -> Loaded:
    """Read every sheet of a spreadsheet, hidden ones too; a formula counts with the value that was stored for it."""
    if path.suffix.lower() == ".xls":
        check_kind(path, _OLD_KIND, _OLE)
        return _read_sheets(path, source, "", [])
    warnings: list[str] = []
    with opened_archive(path, _KIND) as archive, parsing(_KIND):
        title = stated_title(archive, _KIND)
        n_formulas = n_errors = 0  # formulas without a stored value, as no program has computed them
        for name in archive.namelist():
            if "/worksheets/" in name and name.endswith(".xml"):
                part = archive.read(name)
                n_formulas += sum(not _TEXT.search(cell[1]) for cell in _UNSTORED.finditer(part))
                n_errors += sum(1 for _ in _ERROR.finditer(part))
        if n_formulas:
            formulas = "1 formula without a value" if n_formulas == 1 else f"{n_formulas:,} formulas without values"
            cure = f"save the {_KIND} in a spreadsheet program, which computes them."
            warnings.append(f"{formulas} left blank; {cure}")
        if n_errors:
            cells = "1 cell that shows an error" if n_errors == 1 else f"{n_errors:,} cells that show errors"
            warnings.append(f"{cells} left blank; correct their formulas.")
        return _read_sheets(path, source, title, warnings)


def _read_sheets(path: Path, source: str, title: str, warnings: list[str]) -> Loaded:
    documents, budget, n_chars = [], CellBudget(), 0
    for number, name, rows in _sheets(path):
        n_chars += sum(len(value) for row in rows for value in row)
        if n_chars > MAX_FILE_CHARS:
            raise LoadError(f"the {_KIND} has more than {MAX_FILE_CHARS:,} characters; split it.")
        lines, n_too_long = markdown_table(rows, budget)
        if lines:
            documents.append(Document(source, number, "\n".join([f"# {name}", "", *lines]), title, section=name))
        if n_too_long:
            warnings.append(too_long(n_too_long, f"sheet {name!r}: "))
    if not documents:
        raise LoadError(warnings[0] if warnings else f"the {_KIND} holds no value; fill it or remove the file.")
    return Loaded(tuple(documents), tuple(warnings))


def _sheets(path: Path) -> Iterator[tuple[int, str, list[list[str]]]]:
    """Yield number, name and rows of each sheet; charts have numbers, too."""
    from python_calamine import PasswordError, SheetTypeEnum, load_workbook

    with parsing(_KIND):
        try:
            book = load_workbook(path)
        except PasswordError:
            raise LoadError(f"the {_KIND} is encrypted; save it without a password.") from None
        n_cells = 0
        for number, tab in enumerate(book.sheets_metadata):
            if tab.typ == SheetTypeEnum.WorkSheet:
                sheet = book.get_sheet_by_index(number)
                n_cells += sheet.width * sheet.total_height  # rows above the first one that is filled are read, too
                if n_cells > _MAX_CELLS:
                    raise LoadError(f"the {_KIND} has more than {_MAX_CELLS:,} cells; split it or remove empty ones.")
                rows = (list(map(_shown, row)) for row in sheet.iter_rows())
                yield number + 1, " ".join(tab.name.split()), list(filter(any, rows))


def _shown(value: Any) -> str:
    """Return a cell's value as a reader would see it: whole numbers without a fraction, dates without a midnight."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(sep=" ", timespec="seconds")
    return str(value)
