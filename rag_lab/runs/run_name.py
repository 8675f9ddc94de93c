"""The name of a run in a store that several machines share: it lies in the run folder, from wherever that is seen."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

from rag_lab._kit.whole_file import whole_file

NAME_FILE = ".name"


def run_name(folder: Path) -> str:
    """Return the name of the run in `folder`, given to it where it has none."""
    if found := known_name(folder):
        return found
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", folder.resolve().name).strip("._-") or "run"
    with whole_file(folder / NAME_FILE) as partial:
        partial.write_text(f"{plain}-{uuid.uuid4().hex[:8]}", encoding="utf-8")
    return known_name(folder)


def known_name(folder: Path) -> str:
    """Return the name of the run in `folder`; '' where it has none."""
    try:
        return (folder / NAME_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
