"""Progress of a variant: a bar for whoever watches the notebook, or a line in a file for the sweep that runs it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm


class VariantProgress:
    """A callback for `Pipeline.run`. With a `live` file it writes one line there and removes it at the end."""

    def __init__(self, live: Path | None) -> None:
        self.live = live
        self._bar: Any = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that `done` of `total` traces have passed `stage`."""
        if self.live is not None:
            self.enter(f"{stage} {done}/{total}")
            return
        if stage != self._stage:
            self._close()
            self._bar, self._stage = tqdm(total=total, desc=stage, unit="question"), stage
        self._bar.update(done - self._bar.n)

    def enter(self, step: str) -> None:
        """Tell the sweep of a step that draws a bar of its own in a notebook."""
        if self.live is not None:
            self.live.write_text(step, encoding="utf-8")

    def __enter__(self) -> VariantProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()
        if self.live is not None:
            self.live.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
