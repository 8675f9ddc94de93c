"""What a sweep that runs tells other processes: which variants run, how others have ended, and that it lives."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

from rag_lab._kit.process import Process
from rag_lab.experiment.manifest import VariantState
from rag_lab.runs.live_file import LiveEnd, LiveSweep, remove_live, write_live
from rag_lab.runs.run_folder import RunFolder

_WRITE_EVERY_S = 2.0


class SweepTold:
    """Writes what a sweep in `run` says of itself: at once where that changes, else every two seconds.

    At the end of the block, be it by Ctrl-C, it says nothing any more; what a kill leaves names a process that is gone.
    """

    def __init__(self, run: RunFolder) -> None:
        self._path = run.path
        now = time.time()
        self._live = LiveSweep(Process.this(), now, now, 1, "plan")

    def enter(self, step: str, jobs: int = 1) -> None:
        """Tell what the sweep does from now on, and how many variants at a time; see `LiveSweep`."""
        self._write(replace(self._live, step=step, jobs=jobs))

    def look(self, running: Sequence[str]) -> None:
        """Tell which variants run, and that the sweep does."""
        now, before = time.time(), self._live.running
        if list(running) != list(before) or now - self._live.seen >= _WRITE_EVERY_S:
            self._write(replace(self._live, running={one: before.get(one, now) for one in running}))

    def end(self, state: VariantState) -> None:
        """Tell how a variant has ended."""
        ended = {**self._live.ended, state.variant_id: LiveEnd(state.status, state.reason, state.seconds)}
        running = {one: began for one, began in self._live.running.items() if one != state.variant_id}
        self._write(replace(self._live, ended=ended, running=running))

    def __enter__(self) -> SweepTold:
        self._write(self._live)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        remove_live(self._path)

    def _write(self, live: LiveSweep) -> None:
        self._live = replace(live, seen=time.time())
        write_live(self._path, self._live)
