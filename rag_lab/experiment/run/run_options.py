"""How a sweep runs: its options, how many variants side by side (`--jobs auto`), in which order, within which limits.

Kernels book their calls in the run's ledger, and the sweep pulls up.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rag_lab._kit import machine, wording
from rag_lab.errors import ConfigError, ModelError
from rag_lab.experiment.config import Limits
from rag_lab.experiment.design import Variant
from rag_lab.experiment.executors import launchers, local
from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.stage_identities import KINDS, models_used, n_chats
from rag_lab.memory.ledger import Ledger, Used
from rag_lab.models import config, providers, weights
from rag_lab.models.hosted import HOST_VARIABLE, OFF
from rag_lab.runs import run_folder as files

_SMALL_MB = 2_000  # of weights, all models together
_LOOK_EVERY_S = 0.5
AUTO: Literal["auto"] = "auto"
Jobs = int | Literal["auto"]
MOST_JOBS = 256
GUESSED_MB = 1500  # of a variant that has not run yet; models are held elsewhere
WAITING_A_CORE = 4  # variants whose models are all behind servers do little but wait


def in_model_order(
    variants: Sequence[Variant], metrics: Sequence[str], models: Callable[[Variant], Set[str]] | None = None
) -> list[Variant]:
    """Return the variants, the first (the baseline) first, then always one that needs the fewest models anew.

    Of several it is the one that lets go of the fewest, and then the one that stands first. Only where all models are
    small together, what takes longest begins, since it must not end last: most stages that ask a chat model, then a
    reranker, then a corpus that is another than the first variant's.
    """
    needs = [(models or (lambda one: models_of(one, metrics, served=False)))(variant) for variant in variants]
    if are_small(set().union(*needs)):
        usual = variants[0].config.corpus if variants else None
        what = [(-n_chats(c), c.rerank.name == "none", c.corpus == usual) for c in (one.config for one in variants)]
        return [variants[n] for n in sorted(range(len(variants)), key=what.__getitem__)]
    order, left = [0][: len(variants)], list(range(1, len(variants)))
    while left:
        held = needs[order[-1]]
        following = min(left, key=lambda n: (len(needs[n] - held), len(held - needs[n]), n))
        order.append(following)
        left.remove(following)
    return [variants[n] for n in order]


def models_of(variant: Variant, metrics: Sequence[str], *, served: bool) -> frozenset[str]:
    """Return the names of the models that a variant asks of servers, or whose weights it needs on this machine."""
    found = set[str]()
    for role, names in models_used(variant.config, metrics, asked=True).items():
        kind = KINDS.get(role, providers.CHAT_MODELS)
        for name in config.alternatives(names):
            with suppress(ModelError):  # it is told where the plan is checked
                provider = providers.providers_of(kind).get(providers.split_name(name, kind)[0])
                if provider is not None and provider.is_server == served:
                    found.add(name)
    return frozenset(found)


def are_small(models: Set[str]) -> bool:
    """Tell whether these local models have so few weights together that any machine holds all of them at a time."""
    sizes_mb = []
    for name in (model.partition(":")[2].partition("?")[0] for model in models):
        sizes_mb.append(0.0)
        with suppress(ModelError):
            sizes_mb[-1] = machine.bytes_on_disk(Path(weights.find(name).location)) / 2**20 if name else 0.0
    return all(sizes_mb) and sum(sizes_mb) <= _SMALL_MB


def as_jobs(given: str | int, least: int = 1) -> Jobs:
    """Return how many jobs are meant; 0 are where the work is done elsewhere, and `least` says so."""
    if given == AUTO:
        return AUTO
    text = str(given)
    if not text.isdecimal() or not least <= int(text) <= MOST_JOBS:
        raise ConfigError(f"jobs is {AUTO!r} or a whole number from {least} to {MOST_JOBS}, got {given!r:.40}.")
    return int(text)


def side_by_side(variants: Sequence[Variant], metrics: Sequence[str], run: files.RunFolder) -> tuple[int, str]:
    """Return how many variants this machine has room for, and why.

    That is one a core, and one more where they share models, so that a core works while others wait; or four a core
    where all models are remote.
    """
    used = {name for variant in variants for name in models_used(variant.config, metrics, asked=True).values()}
    has_local = any(models_of(variant, metrics, served=False) for variant in variants)
    waits, shares = bool(used) and not has_local, has_local and os.environ.get(HOST_VARIABLE) != OFF
    records = map(files.read_json, sorted((run.path / "variants").glob(f"*/{files.RECORD_FILE}")))
    # of a kernel itself: models that it shares with others are kept once
    sizes = [float(one.get("peak_memory_mb") or 0) - (one.get("held_elsewhere_mb") or 0) for one in records]
    peak_mb = max(sizes, default=0.0) or None
    return decide(len(variants), machine.usable_cores(), machine.free_mb(), peak_mb, waits=waits, shares=shares)


def decide(
    n_variants: int, cores: int, free: float | None, peak_mb: float | None, *, waits: bool, shares: bool = False
) -> tuple[int, str]:
    """Return the decision and why, by free memory and what a variant has taken at most, in MiB where they are known.

    `waits`: the variants wait for servers most of the time; `shares`: for models that processes of this machine hold.
    """
    each_mb = peak_mb or GUESSED_MB
    wanted = cores * (WAITING_A_CORE if waits else 1) + shares
    room = wanted if free is None else max(1, int(free / each_mb))
    jobs = max(1, min(n_variants, wanted, room))
    why = wording.counted(cores, "core") + (f", {WAITING_A_CORE} variants each as they wait for servers" * waits)
    why += ", and one more as they wait for the models that they share" * shares
    if free is not None:
        why += f"; {free / 1024:.1f} GB of memory free at {each_mb / 1024:.1f} GB each"
    return jobs, f"{wording.counted(jobs, 'variant')} side by side: {why}."


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a sweep runs; see `sweep`."""

    jobs: Jobs = AUTO
    executor: str = launchers.LOCAL
    cold: bool = False
    cell_minutes: float = local.CELL_MINUTES
    progress: bool = True
    slurm: Mapping[str, Any] = field(default_factory=dict)
    check: bool | None = None
    keep_going: bool = False
    retry_failed: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)  # of every kernel, on top of this process's
    run: str = ""  # its name in the store of results


class BudgetGuard:
    """Begins a start of the sweep in the run's ledger and says which variants must not start or go on.

    Once a call was refused, no variant starts any more. A running one ends at its first refused call and may finish
    where it needs none; when the time is up, all end. What other sweeps have used `elsewhere` counts for the limits.
    """

    def __init__(self, run: files.RunFolder, limits: Limits, elsewhere: Used | None = None) -> None:
        self.run = run
        self.ledger = Ledger(run.path / files.LEDGER_FILE)
        self.ledger.start(limits.cost_usd, limits.calls, limits.minutes, elsewhere or Used())
        self._looked_s = float("-inf")
        self._refused: dict[str, str] = {}
        self._out_of_time = ""

    def veto(self, job: local.Job, runs: bool) -> str:
        """Return why a job must not start or go on, or ''."""
        if time.monotonic() - self._looked_s >= _LOOK_EVERY_S:
            self._look()
        of_others = "" if runs else next(iter(self._refused.values()), "")
        return self._out_of_time or self._refused.get(job.name, "") or of_others

    def stopped(self, done: local.Done) -> VariantState | None:
        """Return the state of a variant that a limit stopped, or None; of its results so far only the memory is left.

        A kernel may have come to its end after a call was refused: what it wrote is not what was asked for.
        """
        self._look()
        reason = done.reason if done.vetoed else self._refused.get(done.job.name, "")
        if not reason:
            return None
        for name in (files.TRACES_FILE, files.SCORES_FILE, files.RECORD_FILE):
            (self.run.variant_dir(done.job.name) / name).unlink(missing_ok=True)
        return VariantState(done.job.name, "stopped", reason, done.seconds)

    def _look(self) -> None:
        self.ledger.tick()
        self._refused, self._out_of_time = self.ledger.refused(), self.ledger.out_of_time()
        self._looked_s = time.monotonic()
