"""Whether a text holds a table: rows between bars, or lines in columns as PDF files are read."""

from __future__ import annotations

import re

from rag_lab.corpus.spans import row_spans

_LEAST_ROWS = 3
_COLUMNS = re.compile(r"(?<=[^\s.):•–-])  +(?=\S)")  # the gap between two cells; after `2.` it is a list's


def holds_table(text: str) -> bool:
    """Tell whether three lines that follow each other are rows of a table."""
    if len(row_spans(text)) >= _LEAST_ROWS:
        return True
    following = 0
    for line in text.split("\n"):
        following = following + 1 if _COLUMNS.search(line.strip()) else 0
        if following >= _LEAST_ROWS:
            return True
    return False
