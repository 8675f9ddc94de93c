"""What is shown of an object on the last line of a notebook's cell, in a terminal, and by `print`.

The view of a class is written in a room further below. It is named as text and imported when an object is shown for the
first time: so a record on the ground has a view, and is light to import.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Shown = TypeVar("Shown")


def rich_display(view: str) -> Callable[[type[Shown]], type[Shown]]:
    """Register the view of a class.

    Args:
        view: `module:function`; the function takes an instance, and returns a page with `to_html()` and `to_text()`, of
            at most 100 columns.
    """
    module, _, function = view.partition(":")

    def page(shown: Any) -> Any:
        return getattr(import_module(module), function)(shown)

    def to_html(shown: Any) -> str:
        return str(page(shown).to_html())

    def to_text(shown: Any) -> str:
        return str(page(shown).to_text())

    def to_terminal(shown: Any, printer: Any, cycle: bool) -> None:
        printer.text("…" if cycle else to_text(shown))

    def mark(kind: type[Shown]) -> type[Shown]:
        for name, method in (("_repr_html_", to_html), ("_repr_pretty_", to_terminal), ("__str__", to_text)):
            setattr(kind, name, method)
        return kind

    return mark
