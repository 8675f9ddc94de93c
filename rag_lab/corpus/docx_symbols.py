"""Characters that a Word file takes from a symbol font, by their place in it."""

from __future__ import annotations

import re
from typing import Any

from rag_lab.corpus.docx_styles import W

UNKNOWN = "\ufffd"
_PRIVATE = range(0xF000, 0xF100)  # where a font's own characters are said to be
_CODE = re.compile("[0-9A-Fa-f]{1,4}")
_SYMBOL = {
    **{number: chr(number) for number in b"!#%&()+,./0123456789:;<=>?[]_{|}"},
    **dict(enumerate("ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", 0x41)),
    **dict(enumerate("αβχδεφγηιϕκλμνοπθρστυϖωξψζ", 0x61)),
    **dict(enumerate("ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…", 0xA1)),
    **dict(enumerate("ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊", 0xC0)),
    **{0x22: "∀", 0x24: "∃", 0x27: "∍", 0x2A: "∗", 0x2D: "−", 0x40: "≅", 0x5C: "∴", 0x5E: "⊥", 0x7E: "∼", 0xE5: "∑"},
    **{0xF2: "∫"},
}
_WINGDINGS = {
    **{0x6C: "●", 0x6E: "■", 0x6F: "□", 0x71: "❑", 0x76: "❖", 0x9F: "•", 0xA7: "▪", 0xA8: "◻", 0xD8: "➢"},
    **{0xDF: "←", 0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑"},
}
_FONTS = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}


def symbol(element: Any) -> str:
    """Return the character of a symbol's element, the replacement character where that is not known."""
    code, font = element.get(f"{W}char", ""), _FONTS.get(element.get(f"{W}font", "").lower(), {})
    number = int(code, 16) if _CODE.fullmatch(code) else 0
    character = font.get(number % 0x100, UNKNOWN) if font or number in _PRIVATE else chr(number)
    return character if character.isprintable() else UNKNOWN
