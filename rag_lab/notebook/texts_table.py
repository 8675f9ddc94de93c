"""A table of texts in a notebook, to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_lab.redaction import shown
from rag_lab.visible import NO_FORMULAS

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler


def texts_table(frame: pd.DataFrame) -> Styler:
    """Return a table in which texts stand whole and at the left, without the index; numbers have three digits.

    Texts of documents, models and people are shown as they are: nothing in them is taken for HTML.
    """
    safe = frame.reset_index(drop=True).map(lambda value: shown(value) if isinstance(value, str) else value)
    table = safe.style.format(escape="html", precision=3, na_rep="–").format_index(escape="html", axis=1)
    columns: list[Any] = [{"selector": "th, td", "props": "text-align: left; vertical-align: top"}]
    return table.hide(axis="index").set_table_styles(columns).set_table_attributes(f'class="{NO_FORMULAS}"')
