"""CSV and TSV files: one document, a Markdown table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from rag_lab.corpus.base import Loaded, LoadError, parsing
from rag_lab.corpus.tables import markdown_table, too_long
from rag_lab.corpus.text import read_text
from rag_lab.records import Document

_DELIMITERS = ",;\t|"
_SNIFFED_CHARS = 20_000
_MAX_CELL_CHARS = 2**31 - 1  # a longer row is left out by its length, not an error


def load_delimited(path: Path, source: str) -> Loaded:
    """Read a table of separated values; the separator is found out, the first row is the header.

    Raises:
        LoadError: if the file is empty, too long, not text, or holds no cell.
    """
    text, warnings = read_text(path)
    limit = csv.field_size_limit(_MAX_CELL_CHARS)
    try:
        with parsing("table"):
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, path.suffix.lower())))
    finally:
        csv.field_size_limit(limit)
    lines, n_too_long = markdown_table(rows)
    if not lines:
        raise LoadError(too_long(n_too_long) if n_too_long else "the table is empty; fill it or remove the file.")
    if n_too_long:
        warnings = (*warnings, too_long(n_too_long))
    return Loaded((Document(source, None, "\n".join(lines)),), warnings)


def _delimiter(text: str, suffix: str) -> str:
    """Return the separator that stands equally often, and most often, in the first lines; a comma where none does."""
    if suffix == ".tsv":
        return "\t"
    lines = [line for line in text[:_SNIFFED_CHARS].split("\n")[:20] if line.strip()]
    whole = lines[:-1] if len(text) > _SNIFFED_CHARS and len(lines) > 1 else lines

    def rank(delimiter: str) -> tuple[bool, int]:
        counts = [line.count(delimiter) for line in whole]
        return len(set(counts)) == 1, min(counts)

    best = max(_DELIMITERS, key=lambda delimiter: (rank(delimiter)[1] > 0, *rank(delimiter)))
    return best if rank(best)[1] else ","
