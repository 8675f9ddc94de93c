"""The text of a Word paragraph: runs, symbols, equations, marks of notes; text boxes are handed on.

Deleted text and field codes are not read. Elements are those of ECMA-376, part 1, section 17.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from rag_lab.corpus.docx_math import M, equation
from rag_lab.corpus.docx_styles import W
from rag_lab.corpus.docx_symbols import symbol

UNREAD = {
    f"{W}del",
    f"{W}moveFrom",
    f"{W}instrText",
    f"{W}delText",
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",  # repeats what its choice says
}
BOX = f"{W}txbxContent"
EQUATIONS = {f"{M}oMath", f"{M}oMathPara"}
_BREAKS = {f"{W}tab": " ", f"{W}ptab": " ", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-"}
_NOTES = {f"{W}footnoteReference": "footnotes", f"{W}endnoteReference": "endnotes"}


class Notes:
    """The notes that a text refers to, numbered in its order: `[^1]` for a footnote, `[^e1]` for an endnote."""

    def __init__(self) -> None:
        self.labels: dict[tuple[str, str], str] = {}  # (part, id) -> label
        self._counts = Counter[str]()

    def label(self, part: str, note_id: str) -> str:
        """Return the label of a note."""
        if (part, note_id) not in self.labels:
            self._counts[part] += 1
            self.labels[part, note_id] = f"[^{'e' if part == 'endnotes' else ''}{self._counts[part]}]"
        return self.labels[part, note_id]


def read_text(element: Any, notes: Notes) -> tuple[str, list[Any]]:
    """Return the text below an element, and the text boxes in it, which are not part of its line."""
    texts, boxes = [], []
    pending = [element]
    while pending:
        part = pending.pop()
        if part.tag == BOX:
            boxes.append(part)
        elif (text := _text(part, notes)) is not None:
            texts.append(text)
        elif part.tag not in UNREAD:
            pending += reversed(part)
    return "".join(texts).strip(), boxes


def _text(element: Any, notes: Notes) -> str | None:
    """Return the text that an element is, None for one that only holds others."""
    tag = element.tag
    if tag == f"{W}t":
        return element.text or ""
    if tag == f"{W}sym":
        return symbol(element)
    if tag in EQUATIONS:
        return equation(element)
    if tag in _NOTES:
        return notes.label(_NOTES[tag], element.get(f"{W}id", ""))
    return _BREAKS.get(tag)
