"""Word files (DOCX) as Markdown: headings and lists by their style, tables with a row a line, then notes and headers.

The parts are read directly: the text of content controls, text boxes and accepted changes counts, deleted text, field
codes and comments do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_lab.corpus.archive import Archive, opened_archive, parsed_part
from rag_lab.corpus.base import Loaded, LoadError, parsing
from rag_lab.corpus.docx_blocks import Blocks
from rag_lab.corpus.docx_styles import Styles, W
from rag_lab.corpus.relations import relations
from rag_lab.records import Document

_KIND = "Word document"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_MARGINS = ("header", "footer")


def load_docx(path: Path, source: str) -> Loaded:
    """Read a Word file; its title is its own, else its first heading.

    Raises:
        LoadError: if the file is empty, encrypted, damaged, too large, or holds no text.
    """
    with opened_archive(path, _KIND) as archive, parsing(_KIND):
        parts = _Parts(archive)
        reader = Blocks(Styles(next(parts.of("styles"), None)))
        body = [alone for _, alone in reader.read(parts.main)]
        blocks = [*body, *_notes(parts, reader), *_margins(parts, reader)]
    if not blocks:
        raise LoadError("the Word document holds no text; replace or remove it.")
    return Loaded((Document(source, None, "\n\n".join(blocks), parts.title or _first_heading(body)),))


class _Parts:
    """The parts of a Word file, by what they are to its main one; the others are parsed one at a time."""

    def __init__(self, archive: Archive) -> None:
        of_file = {relation.kind: relation.part for relation in relations(archive, "", _KIND)}
        name = of_file.get("officeDocument", "word/document.xml")
        self.main = parsed_part(archive, name, _KIND)
        if self.main is None or self.main.tag != f"{W}document":
            raise LoadError(f"the file is no {_KIND} although its name ends so; replace, rename or remove it.")
        core = parsed_part(archive, of_file.get("core-properties", "docProps/core.xml"), _KIND)
        self.title: str = (core.findtext(_TITLE) if core is not None else "") or ""
        self._archive, self._others = archive, relations(archive, name, _KIND)

    def of(self, *kinds: str) -> Iterator[Any]:
        """Yield the parts of these kinds."""
        names = dict.fromkeys(other.part for other in self._others if other.kind in kinds)
        found = (parsed_part(self._archive, name, _KIND) for name in names)
        return (root for root in found if root is not None)


def _notes(parts: _Parts, reader: Blocks) -> Iterator[str]:
    """Yield the notes that the text refers to, in its order."""
    notes = {
        (kind, note.get(f"{W}id")): note
        for kind in ("footnotes", "endnotes")
        for root in parts.of(kind)
        for note in root.iterchildren()
    }
    for key, label in list(reader.notes.labels.items()):
        if key in notes:
            yield f"{label}: {' '.join(line for line, _ in reader.read(notes[key]))}"


def _margins(parts: _Parts, reader: Blocks) -> Iterator[str]:
    """Yield what headers and footers say, each line once; numbers of pages say nothing."""
    blocks = (alone for root in parts.of(*_MARGINS) for _, alone in reader.read(root))
    return (block for block in dict.fromkeys(blocks) if any(map(str.isalpha, block)))


def _first_heading(blocks: list[str]) -> str:
    return next((block.lstrip("#").strip() for block in blocks if block.startswith("#")), "")
