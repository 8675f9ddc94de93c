r"""Control characters made visible, so that a text from outside cannot steer the terminal or page that shows it.

An escape sequence can write to the clipboard, rename the window or hide what was printed; U+202E turns the reading
direction around. Each such character is shown as Python writes it: `\x1b`, `\u202e`. New lines and tabs stay.
"""

from __future__ import annotations

import re

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"  # C0, C1, bidi, surrogates
)

# Classes of HTML in which JupyterLab and nbconvert take no dollars for a formula: "$ 1 and $ 2".
NO_FORMULAS = "mathjax_ignore tex2jax_ignore"


_ENDLESS = re.compile(r"\S{1000,}")
_SHOWN_CHARS = 100


def shortened(sentence: str) -> str:
    """Return a sentence for people in which no word, that somebody gave, goes on for a thousand characters."""
    return _ENDLESS.sub(lambda found: f"{found[0][:_SHOWN_CHARS]}…", sentence)


def visible(text: str) -> str:
    """Return `text` with every control character shown in place of sent; anything else is left as it is."""
    return CONTROL.sub(_shown, text)


def visible_json(text: str) -> str:
    """Return a JSON text whose control characters are escaped as JSON does it, so that it holds the same values."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
