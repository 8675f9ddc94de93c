"""HTML whose buttons call Python: what `prefer` and `label` are shown by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from markupsafe import Markup

from rag_lab.report.page.templates import asset

_FOLDER = Path(__file__).parent


class ClickedPage(anywidget.AnyWidget):
    """A view of something that draws itself: `do` is called with what was clicked, and the page is drawn anew.

    Args:
        draw: the HTML, in which everything from outside is escaped; what has `data-do` is a button, `data-value` goes
            with it, and `data-key` is the key that presses it.
        do: what is done, with the texts typed into the page by their `name`.
    """

    _esm = _FOLDER / "clicked.js"
    _css = str(asset("card.css")) + (_FOLDER / "clicked.css").read_text(encoding="utf-8")
    html = traitlets.Unicode().tag(sync=True)

    def __init__(self, draw: Callable[[], str], do: Callable[[str, str, Mapping[str, str]], None]) -> None:
        super().__init__(html=draw())
        self._draw, self._do = draw, do
        self.on_msg(lambda _, content, __: self.clicked(content))

    def clicked(self, message: Mapping[str, Any]) -> None:
        """Do what the message says, and draw what became of it."""
        typed = {str(name): str(text) for name, text in dict(message.get("typed") or {}).items()}
        self._do(str(message.get("do", "")), str(message.get("value", "")), typed)
        self.html = self._draw()


def style() -> Markup:
    """Return the style of the page, for where no widget is alive."""
    return Markup(ClickedPage._css)  # noqa: S704 -- our own files


def shown_with(widget: ClickedPage, to_html: Callable[[str], str], text: str, **options: Any) -> Any:
    """Return the widget for front ends that have it, with HTML and text for those that have not."""
    bundle = widget._repr_mimebundle_(**options)
    still = {"text/html": to_html(style()), "text/plain": text}
    return ({**bundle[0], **still}, *bundle[1:]) if isinstance(bundle, tuple) else {**(bundle or {}), **still}
