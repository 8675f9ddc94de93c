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

    methods: dict[str, Callable[..., Any]] = {
        "_repr_html_": lambda shown: str(page(shown).to_html()),
        "_repr_pretty_": lambda shown, printer, cycle: printer.text("…" if cycle else str(page(shown).to_text())),
        "__str__": lambda shown: str(page(shown).to_text()),
    }

    def mark(kind: type[Shown]) -> type[Shown]:
        for name, method in methods.items():
            setattr(kind, name, method)
        return kind

    return mark
