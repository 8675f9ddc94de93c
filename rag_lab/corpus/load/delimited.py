"""CSV and TSV files: one document, a Markdown table."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path

from rag_lab.corpus.load.loader import Loaded, LoadError, parsing
from rag_lab.corpus.load.markdown_table import markdown_table, too_long
from rag_lab.corpus.load.text import read_text
from rag_lab.records import Document

_DELIMITERS = ",;\t|"
_NONE = "\x1f"  # what a table of one column is parted by: no text holds it
_DECLARED = re.compile(r'"?sep=([^"\n])"?\n', re.IGNORECASE)  # Excel's own first line
_DIVIDING_COMMA = re.compile(r"(?<!\d),(?! )|,(?![\d ])")  # neither within a number nor within a sentence
_SNIFFED_CHARS = 20_000
_MAX_CELL_CHARS = 2**31 - 1  # a longer row is left out by its length, not an error


def load_delimited(path: Path, source: str) -> Loaded:
    """Read a table of separated values; the separator is found out or declared, the first row is the header.

    Raises:
        LoadError: if the file is empty, too long, not text, or holds no cell.
    """
    text, warnings = read_text(path)
    limit = csv.field_size_limit(_MAX_CELL_CHARS)
    try:
        with parsing("table"):
            rows = _rows(text, path.suffix.lower())
    finally:
        csv.field_size_limit(limit)
    lines, n_too_long = markdown_table(rows)
    if not lines:
        raise LoadError(too_long(n_too_long) if n_too_long else "the table is empty; fill it or remove the file.")
    if n_too_long:
        warnings = (*warnings, too_long(n_too_long))
    return Loaded((Document(source, None, "\n".join(lines)),), warnings)


def _rows(text: str, suffix: str) -> list[list[str]]:
    declared = _DECLARED.match(text)
    if declared:
        return _parsed(text[declared.end() :], declared[1])
    return _parsed(text, "\t" if suffix == ".tsv" else _delimiter(text))


def _parsed(text: str, delimiter: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))


def _delimiter(text: str) -> str:
    """Return the separator that most of the first rows have, and have equally often."""
    tables = {delimiter: _sampled(text, delimiter) for delimiter in _DELIMITERS}
    divides = {",": _DIVIDING_COMMA.search(text, 0, _SNIFFED_CHARS) is not None}

    def rank(delimiter: str) -> tuple[int, bool, int]:
        n_rows, n_columns = _shape(tables[delimiter])
        return n_rows, divides.get(delimiter, True), n_columns

    best = max(_DELIMITERS, key=rank)
    n_rows, is_sure, _ = rank(best)
    return best if n_rows and (is_sure or 2 * n_rows > len(tables[best])) else _NONE


def _sampled(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows that are not blank, without one that the end of the sample cuts."""
    rows = _parsed(text[:_SNIFFED_CHARS], delimiter)
    whole = rows[:-1] if len(text) > _SNIFFED_CHARS and len(rows) > 1 else rows
    return [row for row in whole if row]


def _shape(rows: list[list[str]]) -> tuple[int, int]:
    """Return the most frequent number of columns beyond one, after the number of rows that have it."""
    widths = Counter(len(row) for row in rows if len(row) > 1)
    return max(((n_rows, n_columns) for n_columns, n_rows in widths.items()), default=(0, 0))
