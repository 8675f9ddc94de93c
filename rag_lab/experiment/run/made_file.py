"""The file of a run folder that says what its outputs were made of; it is light to ask whether it is there."""

from __future__ import annotations

from pathlib import Path

MADE_FILE = "made_of.json"  # what the outputs were made of, and what they were when they had been made


def looks_finished(folder: Path) -> bool:
    """Tell whether a sweep in this folder has come to its end; whether that still holds, `finished` finds out."""
    return (folder / MADE_FILE).is_file()
