"""What a sweep that runs says of itself, in small files that anybody may read: one of the sweep, one a running variant.

They are written whole, without secrets, and are gone at a proper end: one that is left names a process that was killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rag_lab._kit.process import Process
from rag_lab.runs.run_folder import write_json

LIVE_FILE = "live.json"

Live = TypeVar("Live", bound="LiveVariant | LiveSweep")


@dataclass(frozen=True, slots=True)
class LiveVariant:
    """A variant at work.

    `done` of `total` questions have passed `stage` (`total` is None where nothing is counted), of which `known` were
    there when it began, at `stage_began` in seconds since 1970. `remembered` and `computed` count the results of all
    its stages; `failed` and `fell_back` the questions that did, and `reason` is the last one's.
    """

    stage: str
    stage_began: float
    done: int = 0
    total: int | None = None
    known: int = 0
    remembered: int = 0
    computed: int = 0
    failed: int = 0
    fell_back: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LiveEnd:
    """How a variant ended in this start of the sweep: `ok`, `failed` or `stopped`, and why."""

    status: str
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LiveSweep:
    """A sweep at work: the process that conducts it, when it began and when it last said so, in seconds since 1970.

    `step` is what it does: `plan`, `check`, `variants` or `report`. `running` are the ids of the variants that run, at
    most `jobs` at a time, and when each began; `ended` those that have ended in this start.
    """

    process: Process
    began: float
    seen: float
    jobs: int
    step: str
    running: dict[str, float] = field(default_factory=dict)
    ended: dict[str, LiveEnd] = field(default_factory=dict)


_VARIANT = TypeAdapter(LiveVariant)
_SWEEP = TypeAdapter(LiveSweep)


def write_live(folder: Path, live: LiveVariant | LiveSweep) -> None:
    """Replace what `folder`, of a variant or of a run, says of itself."""
    write_json(folder / LIVE_FILE, live)


def read_live_variant(folder: Path) -> LiveVariant | None:
    """Return what a variant says of itself; None where it says nothing, or nothing that can be read."""
    return _read(folder, _VARIANT)


def live_variant(known: Mapping[str, Any]) -> LiveVariant:
    """Return a variant's values, by name, as what it says of itself; a ValidationError where they are no such."""
    return _VARIANT.validate_python(known)


def read_live_sweep(folder: Path) -> LiveSweep | None:
    """Return what a sweep says of itself; None where it says nothing, or nothing that can be read."""
    return _read(folder, _SWEEP)


def remove_live(folder: Path) -> None:
    """Say nothing any more."""
    (folder / LIVE_FILE).unlink(missing_ok=True)


def _read(folder: Path, adapter: TypeAdapter[Live]) -> Live | None:
    try:
        return adapter.validate_json((folder / LIVE_FILE).read_bytes())
    except (OSError, ValidationError):
        return None  # it has not begun, has ended, or the disk is full
