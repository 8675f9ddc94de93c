"""A data frame of numbers that shows itself as a page for readers."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd


class ShownFrame(pd.DataFrame):
    """A frame to compute with, in which every number is as it was; it is shown rounded and beside what it means.

    Whatever pandas makes of it, be it a copy, a row or a part, is pandas' own again and shows all of its numbers.
    """

    _html: Callable[[], str]
    _text: Callable[[], str]
    _metadata = ["_html", "_text"]  # noqa: RUF012 - pandas' way of naming attributes that are no columns

    def _repr_html_(self) -> str:
        return self._html()

    def __repr__(self) -> str:
        return self._text()


def shown_frame(frame: pd.DataFrame, html: Callable[[], str], text: Callable[[], str]) -> ShownFrame:
    """Return `frame` so that it shows itself by these; they are called where it is shown, and not before."""
    shown = ShownFrame(frame)
    shown._html, shown._text = html, text
    return shown
