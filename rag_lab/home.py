"""Where the workbench keeps what it remembers: indexes, vectors, stage results, converted weights."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return the workbench's folder: `$RAG_LAB_HOME`, else `.rag_lab` below the current folder. It may not exist."""
    return Path(os.environ.get("RAG_LAB_HOME") or ".rag_lab").resolve()
