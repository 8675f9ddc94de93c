"""The tabs of a workbook: their places, and the formulas that no program has computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_lab.corpus.archive import Archive, is_strict, parsed_part
from rag_lab.corpus.base import LoadError
from rag_lab.corpus.relations import relations

_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab: its number from the left, counted from 1, charts included, and the part that holds its sheet."""

    number: int
    part: str


def tabs(archive: Archive, kind: str) -> dict[str, Tab]:
    """Return the tabs of a workbook by their names.

    Raises:
        LoadError: if the library does not know the names that its elements have.
    """
    of_file = {relation.kind: relation.part for relation in relations(archive, "", kind)}
    name = of_file.get("officeDocument", "xl/workbook.xml")
    if is_strict(archive, name):
        raise LoadError(f"the {kind} is of the strict form of the format, which is not read; save it in the usual one.")
    parts = {relation.id: relation.part for relation in relations(archive, name, kind)}
    book = parsed_part(archive, name, kind)
    found = book.iterfind("{*}sheets/{*}sheet") if book is not None else ()
    return {
        sheet.get("name", ""): Tab(number, parts.get(sheet.get(_ID), "")) for number, sheet in enumerate(found, start=1)
    }


def n_unstored(archive: Archive, part: str) -> int:
    """Return how many formulas of a sheet have no stored value, as in files that no spreadsheet program has saved."""
    from lxml import etree

    count = 0
    with archive.open(part) as file:
        for _, row in etree.iterparse(file, tag="{*}row", resolve_entities=False, no_network=True):
            count += sum(map(_is_unstored, row))
            row.clear()
    return count


def _is_unstored(cell: Any) -> bool:
    """Return whether a cell is a formula without a value; a value of type `str` may be empty, as that of `=""`."""
    return cell.find("{*}f") is not None and cell.get("t") != "str" and not cell.findtext("{*}v")
