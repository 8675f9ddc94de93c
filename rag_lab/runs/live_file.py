"""What a sweep that runs says of itself, in small files that anybody may read: one of the sweep, one a running variant.

They are written whole, without secrets, and are gone at a proper end: one that is left names a process that was killed.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from rag_lab._kit.config_file import adapter_of
from rag_lab._kit.machine import Process

LIVE_FILE = "live.json"  # in the folder of a run, of its sweep; in that of a variant, of that variant

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


def read_live(folder: Path, kind: type[Live]) -> Live | None:
    """Return what a variant or a sweep says of itself; None where it says nothing, or nothing that can be read."""
    try:
        found: Live = adapter_of(kind).validate_json((folder / LIVE_FILE).read_bytes())
    except (OSError, ValidationError):
        return None  # it has not begun, has ended, or the disk is full
    return found
