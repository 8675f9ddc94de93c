"""How a sweep stands while it runs: bars and lines for whoever watches, a small file for other processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stderr
from dataclasses import replace
from time import monotonic
from types import TracebackType
from typing import Any, TextIO, cast

from tqdm.auto import tqdm
from tqdm.contrib import DummyTqdmFile

from rag_lab._kit.machine import Process, in_kernel
from rag_lab._kit.wording import some_of
from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.sweep_status import stage_left_s, sweep_left, variant_left
from rag_lab.runs.live_file import LIVE_FILE, LiveEnd, LiveSweep, LiveVariant, read_live
from rag_lab.runs.run_folder import RunFolder, write_json

_LONGEST = 40  # characters of a variant's id in its line
_REDRAW_S = 1.0
_TELL_EVERY_S = 15.0  # where no bar is drawn
_MOST_TOLD = 4  # variants that such a line names
_LINE = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}]"
_LINE_WITHOUT_COUNT = "{desc} [{elapsed}]"
_WRITE_EVERY_S = 2.0


def say(sentence: str) -> None:
    """Show a sentence above whatever bars there are."""
    tqdm.write(sentence, file=_stream())


def _stream() -> TextIO:
    return sys.stdout if in_kernel() else sys.stderr  # below a cell stderr looks like a fault


class SweepProgress:
    """Shows how many of `total` variants are done, and the stage that each running one is at; nothing if not `shown`.

    Bars that are drawn anew several times a second fill a log file, so a stream that is no terminal gets lines alone.
    Whatever is said on stderr meanwhile, by whatever library, stands above the bars.
    """

    def __init__(self, total: int, done: int, *, shown: bool) -> None:
        self._draws = shown and is_watched()
        self._tells = shown
        self._file = _stream()
        self._total, self._done = total, done
        self._bar = self._line(total=total, initial=done, desc="variants", unit="variant", disable=not self._draws)
        self._running: dict[str, _VariantLine] = {}
        self._drawn = self._began = self._said = monotonic()
        self._since: dict[str, float] = {}  # when the variants that run have begun
        self._ended_s: list[float] = []  # what those took that have ended
        self._open = ExitStack()

    def look(self, run: RunFolder, running: Sequence[str]) -> None:
        """Show which stage each of the `running` variants is at."""
        if not self._draws:
            self._since = {one: self._since.get(one, monotonic()) for one in running}
            if self._tells and running and monotonic() - self._said >= _TELL_EVERY_S:
                self.write(self._how_far(run))
            return
        for variant_id in running:
            if variant_id not in self._running:
                taken = {line.position for line in self._running.values()}
                free = next(n for n in range(1, len(taken) + 2) if n not in taken)  # the first below the sweep's own
                bar = self._line(total=None, position=free, leave=False, bar_format=_LINE_WITHOUT_COUNT)
                self._running[variant_id] = _VariantLine(variant_id, bar)
            self._running[variant_id].show(read_live(run.variant_dir(variant_id), LiveVariant))
        if monotonic() - self._drawn > _REDRAW_S:  # so that time passes where nothing else does
            self._drawn = monotonic()
            for bar in (self._bar, *(line.bar for line in self._running.values())):
                bar.refresh()

    def write(self, sentence: str) -> None:
        """Show a sentence, where it is not empty."""
        if sentence and self._tells:
            self._said = monotonic()
            say(sentence)

    def end(self, state: VariantState) -> None:
        """Show that a variant has ended, and why where it was not its own end."""
        if state.variant_id in self._running:
            self._running.pop(state.variant_id).bar.close()
        self._done += 1
        if state.status == "ok":
            self._ended_s.append(state.seconds)
        told = {"ok": state.reason or "ok", "failed": f"failed: {state.reason}", "stopped": state.reason}[state.status]
        self.write(f"[{self._done}/{self._total}] {state.variant_id} {told} ({state.seconds:.0f} s)")
        self._bar.update()

    def __enter__(self) -> SweepProgress:
        if self._draws and not in_kernel():
            self._open.enter_context(redirect_stderr(cast(TextIO, DummyTqdmFile(self._file))))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()
        for line in self._running.values():
            line.bar.close()
        self._bar.close()

    def _how_far(self, run: RunFolder) -> str:
        """Return what runs, how many wait, and how long it may take."""
        now, steps, lasts = monotonic(), [], []
        for variant_id, began in self._since.items():
            live = read_live(run.variant_dir(variant_id), LiveVariant)
            step, stage_s = "its start", None
            if live is not None:
                step = f"{live.stage} {live.done:,}/{live.total:,}" if live.total else live.stage
                stage_s = stage_left_s(live.done, live.total, live.known, time.time() - live.stage_began)
            steps.append(f"{variant_id} at {step}")
            lasts.append(variant_left(now - began, stage_s, self._ended_s))
        waiting = self._total - self._done - len(steps)
        left = sweep_left(lasts, waiting, len(steps), self._ended_s, None)
        return (
            f"[{self._done}/{self._total}] after {(now - self._began) / 60:.1f} min: {some_of(steps, _MOST_TOLD)}; "
            f"{waiting} waiting" + (f"; {left.text()} left" if left else "")
        )

    def _line(self, **options: Any) -> Any:
        return tqdm(file=self._file, dynamic_ncols=True, **options)


class _VariantLine:
    """The line of a variant that runs: its stage, how much of it is done, and the minutes passed and left in it."""

    def __init__(self, variant_id: str, bar: Any) -> None:
        self.bar = bar
        self.position = abs(bar.pos)
        self._name = variant_id if len(variant_id) <= _LONGEST else f"{variant_id[: _LONGEST - 1]}…"
        self._begin("starts", None)

    def show(self, live: LiveVariant | None) -> None:
        """Show what the variant says of itself; nothing new is what it said before."""
        if live is None:
            return
        if (live.stage, live.total) != self._begun:
            self._begin(live.stage, live.total)
        if live.done != self.bar.n:
            self.bar.n = live.done
            self.bar.refresh()

    def _begin(self, stage: str, total: int | None) -> None:
        self._begun = (stage, total)
        self.bar.bar_format = _LINE if total else _LINE_WITHOUT_COUNT
        self.bar.set_description_str(f"  {self._name}: {stage}", refresh=False)
        self.bar.reset(total=total)


def is_watched() -> bool:
    """Whether a bar is seen as it moves: on a terminal, or below the cell of a notebook."""
    return sys.stderr.isatty() or in_kernel()


class SweepStatusWriter:
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

    def __enter__(self) -> SweepStatusWriter:
        self._write(self._live)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        (self._path / LIVE_FILE).unlink(missing_ok=True)

    def _write(self, live: LiveSweep) -> None:
        self._live = replace(live, seen=time.time())
        write_json(self._path / LIVE_FILE, self._live)
