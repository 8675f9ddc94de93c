"""Progress of a variant: a bar for whoever watches the notebook, or a small file for the sweep and whoever asks it."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm

from rag_lab.runs.live_file import LiveVariant, remove_live, write_live
from rag_lab.stages.run_stage import Origin
from rag_lab.stages.stage import Outcome

_WRITE_EVERY_S = 0.3


class VariantProgress:
    """A callback for `Pipeline.run`. With a `folder` it writes what it knows there, and removes it at the end.

    The file is written where a step begins, and a few times a second within one.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._bar: Any = None
        self._stage = ""
        self._live = LiveVariant("starts", time.time())
        self._written = float("-inf")

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that `done` of `total` have passed `stage`."""
        if self.folder is not None:
            self._count(stage, done, total)
            return
        if stage != self._stage:
            self._close()
            self._bar, self._stage = tqdm(total=total, desc=stage, unit="question"), stage
        self._bar.update(done - self._bar.n)

    def enter(self, step: str) -> None:
        """Tell the sweep of a step that draws a bar of its own in a notebook."""
        if self.folder is not None:
            self._count(step, 0, None)

    def saw(self, stage: str, outcomes: Collection[Outcome], origin: Origin) -> None:
        """Count where results came from, and what failed or fell back."""
        failed = [one.reason for one in outcomes if one.status == "failed"]
        fell_back = [one.reason for one in outcomes if one.status == "fallback"]
        live = self._live
        self._live = replace(
            live,
            remembered=live.remembered + len(outcomes) * (origin == "remembered"),
            computed=live.computed + len(outcomes) * (origin == "computed"),
            failed=live.failed + len(failed),
            fell_back=live.fell_back + len(fell_back),
            reason=next((f"{stage}: {why}" for why in (failed or fell_back)[-1:]), live.reason),
        )

    def results(self) -> dict[str, int]:
        """Return how many results of costly stages were remembered, and how many were computed."""
        return {"remembered": self._live.remembered, "computed": self._live.computed}

    def __enter__(self) -> VariantProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()
        if self.folder is not None:
            remove_live(self.folder)

    def _count(self, stage: str, done: int, total: int | None) -> None:
        now = time.time()
        is_new = stage != self._live.stage
        if is_new:
            self._live = replace(self._live, stage=stage, stage_began=now, known=done)
        self._live = replace(self._live, done=done, total=total)
        if self.folder is not None and (is_new or now - self._written >= _WRITE_EVERY_S):
            self._written = now
            write_live(self.folder, self._live)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
