"""Spreadsheets (XLSX, XLSM, XLS, ODS): a document a sheet, the number of its tab as the page, its name as the section.

The library holds a sheet as a rectangle around its cells: two cells of a small file can take all memory, which ends the
process that reads it.

Office files are ZIP archives: what is checked before one is unpacked stands here, and how its parts are read.
"""

import datetime
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_lab.corpus.load.delimited import CellBudget, markdown_table, too_long
from rag_lab.corpus.load.loader import MAX_FILE_CHARS, Loaded, LoadError, parsing
from rag_lab.records import Document

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
    """Open an Office file whose parts, unpacked, are of a size that can be handled; `kind` is what it should be.

    `zipfile` unpacks no part beyond the size that the archive declares, so the declared sizes can be relied on.
    """
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
    """Return the root element of an XML part, None where the archive has no such part.

    Entities are not expanded and nothing is fetched. The strict form of the format is read as the usual one, which has
    other names for the same.
    """
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
        return _read(path, source, "", [])
    with opened_archive(path, _KIND) as archive, parsing(_KIND):
        return _read(path, source, stated_title(archive, _KIND), list(_left_blank(archive)))


def _read(path: Path, source: str, title: str, warnings: list[str]) -> Loaded:
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
                    raise LoadError(
                        f"the {_KIND} has more than {_MAX_CELLS:,} cells; split it or remove what is empty."
                    )
                rows = (list(map(_shown, row)) for row in sheet.iter_rows())
                yield number + 1, " ".join(tab.name.split()), list(filter(any, rows))


def _left_blank(archive: Archive) -> Iterator[str]:
    """Say how many formulas have no stored value, as no program has computed them, and how many cells an error."""
    n_formulas = n_errors = 0
    for name in archive.namelist():
        if "/worksheets/" in name and name.endswith(".xml"):
            part = archive.read(name)
            n_formulas += sum(not _TEXT.search(cell[1]) for cell in _UNSTORED.finditer(part))
            n_errors += sum(1 for _ in _ERROR.finditer(part))
    if n_formulas:
        formulas = "1 formula without a value" if n_formulas == 1 else f"{n_formulas:,} formulas without values"
        yield f"{formulas} left blank; save the {_KIND} in a spreadsheet program, which computes them."
    if n_errors:
        cells = "1 cell that shows an error" if n_errors == 1 else f"{n_errors:,} cells that show errors"
        yield f"{cells} left blank; correct their formulas."


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
