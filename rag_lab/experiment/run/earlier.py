"""What a variant had before it was tried again: kept beside the new attempt until that is at least as good.

It lies in a run folder of the same shape within the run folder, so it is read as every other result is. One that is
there when a sweep starts is what a killed attempt has left, and is put back.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.run.resumed import resumed
from rag_lab.runs.run_folder import DONE_FILE, RunFolder

_FOLDER = "earlier"


def whole(run: RunFolder, variant_id: str, identity: str) -> VariantState | None:
    """Return the state of a variant that an earlier start has finished, also where a killed attempt replaced it."""
    return resumed(_earlier(run), variant_id, identity) or resumed(run, variant_id, identity)


def set_aside(run: RunFolder, variant_id: str) -> None:
    """Move what the variant has out of the way of another attempt."""
    _move(run.variant_dir(variant_id), _earlier(run).variant_dir(variant_id))


def put_back(run: RunFolder, variant_id: str) -> None:
    """Replace another attempt by what the variant had before it."""
    _move(_earlier(run).variant_dir(variant_id), run.variant_dir(variant_id))


def forget(run: RunFolder) -> None:
    """Delete what variants had before attempts that have ended."""
    shutil.rmtree(_earlier(run).path, ignore_errors=True)


def put_back_all(run: RunFolder) -> None:
    """Put back what attempts that were killed have left."""
    for folder in sorted((_earlier(run).path / "variants").glob("*")):
        if not (run.variant_dir(folder.name) / DONE_FILE).is_file():
            put_back(run, folder.name)
    forget(run)


def judged(run: RunFolder, state: VariantState, before: VariantState) -> VariantState:
    """Return how a variant stands that was tried again: `state`, unless what it had `before` is better and put back."""
    if state.status == "ok" and state.curable.total <= before.curable.total:
        return state
    put_back(run, state.variant_id)
    why = state.reason or f"{state.curable} failed in it"
    return replace(before, reason=f"what it had is kept, since another attempt was no better: {why}")


def _earlier(run: RunFolder) -> RunFolder:
    return replace(run, path=run.path / _FOLDER)


def _move(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)
