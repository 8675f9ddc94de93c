"""What shows itself on the last line of a notebook's cell, in a terminal, and by `print`.

How something is shown is written in a module further below, which may import what it likes. It is named as text, and
imported when something is shown for the first time: so a record on the ground shows itself, and is light to import.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Shown = TypeVar("Shown")


def shows_itself(view: str) -> Callable[[type[Shown]], type[Shown]]:
    """Let instances of a class show themselves.

    Args:
        view: the name of a module with `to_html(shown) -> str` and `to_text(shown) -> str`, of at most 100 columns.
    """

    def to_html(shown: Any) -> str:
        html: str = import_module(view).to_html(shown)
        return html

    def to_text(shown: Any) -> str:
        text: str = import_module(view).to_text(shown)
        return text

    def to_terminal(shown: Any, printer: Any, cycle: bool) -> None:
        printer.text("…" if cycle else to_text(shown))

    def mark(kind: type[Shown]) -> type[Shown]:
        for name, method in (("_repr_html_", to_html), ("_repr_pretty_", to_terminal), ("__str__", to_text)):
            setattr(kind, name, method)
        return kind

    return mark
