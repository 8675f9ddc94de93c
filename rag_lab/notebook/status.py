"""How a run stands, in a notebook: once, or live until it ends."""

from __future__ import annotations

import time
from pathlib import Path

from rag_lab.experiment.watch.sweep_status import SweepStatus, sweep_status
from rag_lab.runs.run_folder import RunFolder


def status(run: RunFolder | Path | str, *, watch: bool = False, every_s: float = 2.0) -> SweepStatus:
    """Return how a run stands, which shows itself; with `watch` it is shown, anew, until the run ends.

    To interrupt the cell ends watching, not the sweep.

    Args:
        run: its folder; the sweep may run in another process, or on another machine that shares the folder.
        watch: show it below the cell until it runs no more.
        every_s: seconds between two looks.

    Raises:
        RagLabError: if it is no run folder.
    """
    path = run.path if isinstance(run, RunFolder) else Path(run)
    found = sweep_status(path)
    if not watch:
        return found
    from IPython.display import display

    shown = display(found, display_id=True)
    while found.state == "running":
        time.sleep(every_s)
        found = sweep_status(path)
        if shown is not None:
            shown.update(found)
    return found
