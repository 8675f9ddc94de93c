"""How a sweep runs, and how many variants side by side where that is left to the machine (`--jobs auto`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rag_lab._kit.machine import free_mb, usable_cores
from rag_lab._kit.wording import counted
from rag_lab.errors import ConfigError
from rag_lab.experiment.design import Variant
from rag_lab.experiment.executors.job import CELL_MINUTES
from rag_lab.experiment.executors.launchers import LOCAL
from rag_lab.experiment.model_checks import models_asked
from rag_lab.experiment.run.model_order import local_models
from rag_lab.runs.run_folder import RECORD_FILE, RunFolder, read_json

AUTO: Literal["auto"] = "auto"
Jobs = int | Literal["auto"]
MOST_JOBS = 256

GUESSED_MB = 1500  # of a variant that has not run yet; models are held elsewhere
WAITING_A_CORE = 4  # variants whose models are all behind servers do little but wait


def as_jobs(given: str | int, least: int = 1) -> Jobs:
    """Return how many jobs are meant; 0 are where the work is done elsewhere, and `least` says so.

    Raises:
        ConfigError: if it is neither `auto` nor a number from `least` to 256.
    """
    if given == AUTO:
        return AUTO
    text = str(given)
    if not text.isdecimal() or not least <= int(text) <= MOST_JOBS:
        raise ConfigError(f"jobs is {AUTO!r} or a whole number from {least} to {MOST_JOBS}, got {given!r:.40}.")
    return int(text)


@dataclass(frozen=True, slots=True)
class SideBySide:
    """How many variants run at a time, and why, in words."""

    jobs: int
    why: str


def side_by_side(variants: Sequence[Variant], metrics: Sequence[str], run: RunFolder) -> SideBySide:
    """Return what this machine has room for: a core a variant, or four variants a core where all models are remote.

    Args:
        variants: those that are to run.
        metrics: that score them, by name.
        run: whose earlier starts tell how much memory a variant takes.
    """
    used = {name for variant in variants for name in models_asked(variant.config, metrics).values()}
    waits = bool(used) and not any(local_models(variant, metrics) for variant in variants)
    return decide(len(variants), usable_cores(), free_mb(), _peak_mb(run), waits=waits)


def decide(n_variants: int, cores: int, free: float | None, peak_mb: float | None, *, waits: bool) -> SideBySide:
    """Return the decision for so many variants.

    Args:
        n_variants: that are to run.
        cores: that may be used.
        free: memory that is free in MiB, where that is known.
        peak_mb: the most that a variant has taken, where one has run.
        waits: whether the variants wait for servers most of the time.
    """
    each_mb = peak_mb or GUESSED_MB
    wanted = cores * (WAITING_A_CORE if waits else 1)
    room = wanted if free is None else max(1, int(free / each_mb))
    jobs = max(1, min(n_variants, wanted, room))
    told = [counted(cores, "core") + (f", {WAITING_A_CORE} variants each as they wait for servers" if waits else "")]
    if free is not None:
        told.append(f"{free / 1024:.1f} GB of memory free at {each_mb / 1024:.1f} GB each")
    return SideBySide(jobs, f"{counted(jobs, 'variant')} side by side: {'; '.join(told)}.")


def _peak_mb(run: RunFolder) -> float | None:
    records = sorted((run.path / "variants").glob(f"*/{RECORD_FILE}"))
    return max((_own_mb(read_json(path)) for path in records), default=0.0) or None


def _own_mb(record: Mapping[str, Any]) -> float:
    """Return what a variant's kernel took itself: models that it shares with others are held once."""
    return float(record.get("peak_memory_mb") or 0) - float(record.get("held_elsewhere_mb") or 0)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a sweep runs.

    Args:
        jobs: variants that run at the same time; as many as the machine has room for where `auto`.
        executor: where they run, by the name of an executor.
        cold: start a new process for each notebook, instead of one that is prepared.
        cell_minutes: for which a cell of a notebook may run; it is ended then.
        progress: show a progress bar, or a line for each variant where no one watches.
        environment: of every kernel, beside this process's own.
        run: the run's name in the store of results.
        slurm: what a scheduler is asked for, where the executor is one.
        check: ask each variant two questions first; where None, if that costs little beside the rest.
        keep_going: run the rest whatever that check finds.
        retry_failed: try again, too, what another attempt will not obviously cure.
    """

    jobs: Jobs = AUTO
    executor: str = LOCAL
    cold: bool = False
    cell_minutes: float = CELL_MINUTES
    progress: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    slurm: Mapping[str, Any] = field(default_factory=dict)
    check: bool | None = None
    keep_going: bool = False
    retry_failed: bool = False
