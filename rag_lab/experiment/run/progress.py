"""How a sweep stands while it runs: bars and lines for whoever watches, a small file for other processes."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import replace
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, TextIO, cast

from tqdm.auto import tqdm
from tqdm.contrib import DummyTqdmFile

from rag_lab._kit.machine import Process, in_kernel
from rag_lab._kit.wording import some_of
from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.sweep_status import stage_left_s, sweep_left, variant_left
from rag_lab.runs import run_folder, variant_files

_LONGEST = 40  # characters of a variant's id in its line
_REDRAW_S = 1.0
_TELL_EVERY_S = 15.0  # where no bar is drawn
_MOST_NAMED = 4  # variants that such a line names
_LINE = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}]"
_LINE_WITHOUT_COUNT = "{desc} [{elapsed}]"
_WRITE_EVERY_S = 2.0


def say(sentence: str) -> None:
    """Show a sentence above whatever bars there are."""
    tqdm.write(sentence, file=_stream())


def _stream() -> TextIO:
    return sys.stdout if in_kernel() else sys.stderr  # below a cell stderr looks like a fault


def is_watched() -> bool:
    """Whether a bar is seen as it moves: on a terminal, or below the cell of a notebook."""
    return sys.stderr.isatty() or in_kernel()


class SweepProgress:
    """Shows how the sweep in `run` stands, if `shown`, and writes it: at once where that changes, else every 2 seconds.

    Bars that are drawn anew several times a second fill a log file, so a stream that is no terminal gets lines alone.

    At the end of the block, be it by Ctrl-C, the file is deleted; what a kill leaves names a process that is gone.
    """

    def __init__(self, run: run_folder.RunFolder, *, shown: bool) -> None:
        now = time.time()
        self._path = run.path / variant_files.LIVE_FILE
        self._live = variant_files.LiveSweep(Process.of(), now, now, 1, "plan")
        self._shown, self._draws = shown, shown and is_watched()
        self._tqdm = partial(tqdm, file=_stream(), dynamic_ncols=True)
        self._bar: Any = None  # of the sweep, while variants run
        self._lines: dict[str, Any] = {}  # bars of the variants that run
        self._stages: dict[str, tuple[str, int | None]] = {}  # at which these are, and of how many questions
        self._total = self._done = 0
        self._drawn = self._began = self._said = monotonic()

    def __enter__(self) -> "SweepProgress":
        self.tell()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._path.unlink(missing_ok=True)

    def tell(self, **changes: Any) -> None:
        """Write what has changed of the `LiveSweep`, as its `step` and `jobs`."""
        self._live = replace(self._live, **changes, seen=time.time())
        run_folder.write_json(self._path, self._live)

    @contextmanager
    def variants(self, total: int, done: int) -> Iterator[None]:
        """Show in this block how many of `total` variants are done, and what each running one is at."""
        self._total, self._done, self._began = total, done, monotonic()
        options = {"total": total, "initial": done, "desc": "variants", "unit": "variant"}
        self._bar = self._tqdm(**options, disable=not self._draws)
        above = cast(TextIO, DummyTqdmFile(_stream()))
        try:
            with redirect_stderr(above) if self._draws and not in_kernel() else nullcontext():
                yield
        finally:
            for bar in (*self._lines.values(), self._bar):
                bar.close()

    def look(self, run: run_folder.RunFolder, running: Sequence[str]) -> None:
        """Tell that these variants run, and show at which stage each of them is in the folder `run`."""
        now, before = time.time(), self._live.running
        if list(running) != list(before) or now - self._live.seen >= _WRITE_EVERY_S:
            self.tell(running={one: before.get(one, now) for one in running})
        if not self._draws:
            if self._shown and running and monotonic() - self._said >= _TELL_EVERY_S:
                self.write(self._how_far(run))
            return
        for variant_id in running:
            self._show(variant_id, variant_files.read_live(run.variant_dir(variant_id), variant_files.LiveVariant))
        if monotonic() - self._drawn > _REDRAW_S:  # so that time passes where nothing else does
            self._drawn = monotonic()
            for bar in (self._bar, *self._lines.values()):
                bar.refresh()

    def write(self, sentence: str) -> None:
        """Show a sentence, where it is not empty."""
        if sentence and self._shown:
            self._said = monotonic()
            say(sentence)

    def end(self, state: VariantState) -> None:
        """Tell and show that a variant has ended, and why where it was not its own end."""
        if state.variant_id in self._lines:
            self._lines.pop(state.variant_id).close()
            del self._stages[state.variant_id]
        self._done += 1
        outcome = f"failed: {state.reason}" if state.status == "failed" else state.reason or "ok"
        self.write(f"[{self._done}/{self._total}] {state.variant_id} {outcome} ({state.seconds:.0f} s)")
        self._bar.update()
        ended = {**self._live.ended, state.variant_id: variant_files.LiveEnd(state.status, state.reason, state.seconds)}
        self.tell(ended=ended, running={v: at for v, at in self._live.running.items() if v != state.variant_id})

    def _show(self, variant_id: str, live: variant_files.LiveVariant | None) -> None:
        """Show the stage of a variant, how much of it is done, and the minutes passed and left in it."""
        if variant_id not in self._lines:
            taken = {abs(bar.pos) for bar in self._lines.values()}
            free = next(n for n in range(1, len(taken) + 2) if n not in taken)  # the first below the sweep's own
            self._lines[variant_id] = self._tqdm(position=free, leave=False, bar_format=_LINE_WITHOUT_COUNT)
        elif live is None:  # nothing new is what it said before
            return
        bar, live = self._lines[variant_id], live or variant_files.LiveVariant("starts", 0.0)
        if (live.stage, live.total) != self._stages.get(variant_id):
            self._stages[variant_id] = (live.stage, live.total)
            name = variant_id if len(variant_id) <= _LONGEST else f"{variant_id[: _LONGEST - 1]}…"
            bar.bar_format = _LINE if live.total else _LINE_WITHOUT_COUNT
            bar.set_description_str(f"  {name}: {live.stage}", refresh=False)
            bar.reset(total=live.total)
        if live.done != bar.n:
            bar.n = live.done
            bar.refresh()

    def _how_far(self, run: run_folder.RunFolder) -> str:
        """Return what runs, how many wait, and how long it may take."""
        now, steps, lasts = time.time(), [], []
        ended_s = [end.seconds for end in self._live.ended.values() if end.status == "ok"]
        for variant_id, began in self._live.running.items():
            live = variant_files.read_live(run.variant_dir(variant_id), variant_files.LiveVariant)
            step, stage_s = "its start", None
            if live is not None:
                step = f"{live.stage} {live.done:,}/{live.total:,}" if live.total else live.stage
                stage_s = stage_left_s(live.done, live.total, live.known, now - live.stage_began)
            steps.append(f"{variant_id} at {step}")
            lasts.append(variant_left(now - began, stage_s, ended_s))
        waiting, after = self._total - self._done - len(steps), f"{(monotonic() - self._began) / 60:.1f} min"
        left = sweep_left(lasts, waiting, len(steps), ended_s, None)
        running = f"{some_of(steps, _MOST_NAMED)}; {waiting} waiting" + (f"; {left.text()} left" if left else "")
        return f"[{self._done}/{self._total}] after {after}: {running}"
