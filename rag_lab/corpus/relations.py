"""Which parts of an Office file belong to which: parts are found by their relations, their names are not fixed."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from rag_lab.corpus.archive import Archive, parsed_part

_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


@dataclass(frozen=True, slots=True)
class Relation:
    """A part that another, or the file as a whole, names: by an id, as something, under its name in the archive."""

    id: str
    kind: str  # the last word of its type, such as `styles`
    part: str


def relations(archive: Archive, part: str, kind: str) -> list[Relation]:
    """Return the relations of a part, of the whole file for "", in the file's order; `kind` is what it should be."""
    folder, name = posixpath.split(part)
    root = parsed_part(archive, posixpath.join(folder, "_rels", f"{name}.rels"), kind)
    found = root.iterchildren(_RELATION) if root is not None else ()
    return [
        Relation(item.get("Id", ""), item.get("Type", "").rpartition("/")[2], _joined(folder, item.get("Target", "")))
        for item in found
        if item.get("TargetMode") != "External"
    ]


def _joined(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
