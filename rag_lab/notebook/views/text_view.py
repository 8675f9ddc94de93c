"""Text for terminals: names on the left, what is said of them beside it, no line longer than 100 columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import wrap

from rag_lab.redaction import shown

WIDTH = 100
_NAMES = 16  # columns of the names


@dataclass
class TextView:
    """Lines that are added one after the other; what there is nothing to say of is left out."""

    _lines: list[str] = field(default_factory=list)

    def line(self, text: str) -> None:
        """Add a sentence."""
        self._lines += wrap(one_line(text), WIDTH)

    def fact(self, name: str, text: str) -> None:
        """Add what is said of `name`, broken into lines; nothing where `text` is empty."""
        lines = wrap(one_line(text), WIDTH - _NAMES)
        self._lines += [f"{name if not number else '':{_NAMES}}{line}" for number, line in enumerate(lines)]

    def block(self, title: str, text: str) -> None:
        """Add lines as they are, below a title."""
        self._lines += wrap(one_line(title), WIDTH)
        self._lines += [
            f"  {line}" if len(line) < WIDTH - 1 else f"  {line[: WIDTH - 3]}…" for line in text.splitlines()
        ]

    def text(self) -> str:
        """Return all lines; no secret and no control character stands in them."""
        return shown("\n".join(self._lines))


def one_line(text: str) -> str:
    """Return `text` on one line as it is shown: a control character is longer when it can be seen."""
    return " ".join(shown(text).split())
