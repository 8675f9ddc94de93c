"""Progress of a sweep: a bar where somebody watches, else one line for each variant that ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType

from tqdm.auto import tqdm

from rag_lab.experiment.design import Variant
from rag_lab.experiment.manifest import VariantState
from rag_lab.runs.run_folder import LIVE_FILE, RunFolder


class SweepProgress:
    """Shows how many of `total` variants are done, and the stage that each running one is at; nothing if not `shown`.

    A bar that is drawn anew several times a second fills a log file, so a stream that is no terminal gets lines.
    """

    def __init__(self, total: int, done: int, *, shown: bool) -> None:
        self._draws = shown and is_watched()
        self._tells = shown and not self._draws
        self._bar = tqdm(total=total, initial=done, desc="variants", unit="variant", disable=not self._draws)
        self._total, self._done, self._live = total, done, ""

    def look(self, run: RunFolder, variants: Sequence[Variant]) -> None:
        """Show which stage each of the running `variants` is at."""
        live = _stages(run, variants) if self._draws else ""
        if live != self._live:
            self._bar.set_postfix_str(live)
            self._live = live

    def tell(self, sentence: str) -> None:
        """Show a sentence, where it is not empty."""
        if sentence and (self._draws or self._tells):
            tqdm.write(sentence, file=sys.stderr)

    def end(self, state: VariantState) -> None:
        """Show that a variant has ended, and why where it was not its own end."""
        self._done += 1
        self._bar.update()
        told = {"ok": state.reason or "ok", "failed": f"failed: {state.reason}", "stopped": state.reason}[state.status]
        if self._tells:
            tqdm.write(
                f"[{self._done}/{self._total}] {state.variant_id} {told} ({state.seconds:.0f} s)", file=sys.stderr
            )
        elif self._draws and state.reason:
            tqdm.write(f"{state.variant_id} {told}", file=sys.stderr)

    def __enter__(self) -> SweepProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bar.close()


def is_watched() -> bool:
    """Whether a bar is seen as it moves: on a terminal, or below the cell of a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _stages(run: RunFolder, variants: Sequence[Variant]) -> str:
    told = []
    for variant in variants:
        try:
            stage = (run.variant_dir(variant.variant_id) / LIVE_FILE).read_text(encoding="utf-8")
        except OSError:
            continue  # it has ended, or has not begun
        told.append(f"{variant.variant_id}: {stage}")
    return ", ".join(told)
