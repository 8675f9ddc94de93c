"""Equations of a Word file as a line of text, as one would type them: `(a+b)/2`, `x^2`, `√(2gh)`.

Elements are those of ECMA-376, part 1, section 22.1.
"""

from __future__ import annotations

from typing import Any

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_BEFORE = {"num": "", "den": "/", "sup": "^", "sub": "_", "lim": "_"}


def equation(element: Any) -> str:
    """Return an equation, or a part of one, as text."""
    name = element.tag.removeprefix(M) if isinstance(element.tag, str) else ""
    if name == "t":
        return element.text or ""
    if name == "rad":
        return f"{_of(element, 'deg')}√{_grouped(_of(element, 'e'))}"
    text = "".join(map(equation, element))
    if name == "d":
        return f"{_character(element, 'begChr', '(')}{text}{_character(element, 'endChr', ')')}"
    if name == "nary":
        return _character(element, "chr", "∫") + text
    if name == "fName":
        return f"{text} "
    return _BEFORE[name] + _grouped(text) if name in _BEFORE and text else text


def _of(element: Any, name: str) -> str:
    return "".join(map(equation, element.iterchildren(f"{M}{name}")))


def _grouped(text: str) -> str:
    return text if len(text) < 2 or text.isdecimal() else f"({text})"


def _character(element: Any, name: str, usual: str) -> str:
    """Return a character that an element's properties set, the usual one where they do not."""
    found = element.find(f"{M}{element.tag.removeprefix(M)}Pr/{M}{name}")
    return str(found.get(f"{M}val", "")) if found is not None else usual
