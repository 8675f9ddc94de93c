"""What a variant that runs elsewhere says of itself, on its way into its folder of the run, where `status` looks.

A moment is sent as the seconds since then: the clocks of two machines differ.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

from pydantic import ValidationError

from rag_lab.runs.live_file import live_variant, read_live_variant, write_live

_BEGAN = "stage_began"
EVERY_S = 3.0  # is said; who looks on, looks every few seconds


def said_in(folder: Path) -> str:
    """Return what a variant at work in `folder` says of itself, as a text to be sent; '' where it says nothing."""
    live = read_live_variant(folder)
    return json.dumps(asdict(live) | {_BEGAN: time.time() - live.stage_began}) if live else ""


def say_in(folder: Path, said: str) -> None:
    """Let `folder`, of a variant in its run, say what was sent; a text that is nothing of the kind says nothing."""
    try:
        known = json.loads(said)
        live = live_variant(known | {_BEGAN: time.time() - known[_BEGAN]})
    except (ValueError, TypeError, KeyError, ValidationError):
        return
    if folder.is_dir():
        write_live(folder, live)
