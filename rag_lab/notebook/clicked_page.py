"""HTML whose buttons call Python: what `prefer`, `label` and the bench are shown by.

Beside each widget stands the same as plain HTML, which the notebook's file keeps: it is what is seen where no kernel
is, and hidden where the widget is alive.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import HTML, DisplayHandle, display
from markupsafe import Markup

from rag_lab.report.page.clicked import Clicked
from rag_lab.report.page.templates import asset

_FOLDER = Path(__file__).parent


class KeptWidget(anywidget.AnyWidget):
    """A widget that shows `html`, and whose last page the notebook's file keeps."""

    html = traitlets.Unicode().tag(sync=True)
    kept = traitlets.Unicode().tag(sync=True)
    _handle: DisplayHandle | None = None

    def page(self) -> str:
        """Return what stands in the file, with the rules that it needs."""
        raise NotImplementedError

    def still(self) -> HTML:
        """Return what a reader without a kernel sees."""
        return HTML(f'<div class="rl-kept" data-kept="{self.kept}">{self.page()}</div>')

    def show(self) -> None:
        """Display the widget, and below it what a reader without a kernel sees."""
        display(self)
        self._handle = DisplayHandle(self.kept)
        self._handle.display(self.still())


class Clickable(Clicked):
    """A page that a notebook shows."""

    @cached_property
    def widget(self) -> "ClickedPage":
        """What a notebook shows."""
        return ClickedPage(self)

    def _ipython_display_(self) -> None:
        self.widget.show()


class ClickedPage(KeptWidget):
    """A view of something that draws itself: what is clicked is done, and the page is drawn anew."""

    _esm = _FOLDER / "clicked.js"
    _css = str(asset("card.css") + asset("clicked.css"))

    def __init__(self, shown: Clickable) -> None:
        super().__init__(html=shown.to_html(), kept=uuid4().hex)
        self._shown = shown
        self.on_msg(lambda _, content, __: self.do(content))

    def do(self, message: Mapping[str, Any]) -> None:
        """Do what the message says, and draw what became of it."""
        self.html = self._shown.receive(message)
        if self._handle:
            self._handle.update(self.still())

    def page(self) -> str:
        """Return the page without buttons."""
        return self._shown.to_html(Markup(self._css))  # noqa: S704 -- our own files
