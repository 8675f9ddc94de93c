"""HTML whose buttons call Python: what `prefer` and `label` are shown by.

Beside the widget stands the same as plain HTML, which the notebook's file keeps: it is what is seen where no kernel is,
and hidden where the widget is alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import HTML, DisplayHandle, display
from markupsafe import Markup

from rag_lab.report.page.templates import asset

_FOLDER = Path(__file__).parent


class Clicked(Protocol):
    """What is shown: it draws itself, and does what was clicked."""

    def to_html(self, style: str = "") -> str:
        """Return the HTML, in which everything from outside is escaped; with a style, of a page that nobody can click.

        What has `data-do` is a button, `data-value` goes with it, and `data-key` is the key that presses it.
        """

    def clicked(self, do: str, value: str, typed: Mapping[str, str]) -> None:
        """Do what was clicked; `typed` are the texts in the page by their `name`."""


class ClickedPage(anywidget.AnyWidget):
    """A view of something that draws itself: what is clicked is done, and the page is drawn anew."""

    _esm = _FOLDER / "clicked.js"
    _css = str(asset("card.css")) + (_FOLDER / "clicked.css").read_text(encoding="utf-8")
    html = traitlets.Unicode().tag(sync=True)
    kept = traitlets.Unicode().tag(sync=True)

    def __init__(self, shown: Clicked) -> None:
        super().__init__(html=shown.to_html(), kept=uuid4().hex)
        self._shown = shown
        self._handle: DisplayHandle | None = None
        self.on_msg(lambda _, content, __: self.do(content))

    def do(self, message: Mapping[str, Any]) -> None:
        """Do what the message says, and draw what became of it."""
        typed = {str(name): str(text) for name, text in dict(message.get("typed") or {}).items()}
        self._shown.clicked(str(message.get("do", "")), str(message.get("value", "")), typed)
        self.html = self._shown.to_html()
        if self._handle:
            self._handle.update(self.still())

    def show(self) -> None:
        """Display the widget, and below it what a reader without a kernel sees."""
        display(self)
        self._handle = DisplayHandle(self.kept)
        self._handle.display(self.still())

    def still(self) -> HTML:
        """Return what the notebook's file keeps."""
        page = self._shown.to_html(Markup(self._css))  # noqa: S704 -- our own files
        return HTML(f'<div class="rl-kept" data-kept="{self.kept}">{page}</div>')
