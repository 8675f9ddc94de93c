"""Which stages have a reader: work follows its reader, and what nobody reads is not computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rag_lab.stages.stage import Stage
from rag_lab.stages.switched_off import Off


def with_readers(stages: Sequence[Stage], read: Iterable[str]) -> list[Stage]:
    """Return, in order, the stages that set a field of `read` or one that a later stage returned here reads.

    A stage that is switched off does nothing, and stays: its record says so.
    """
    wanted = set(read)
    found: list[Stage] = []
    for stage in reversed(stages):
        if isinstance(stage, Off) or any(_names(path) & wanted for path in stage.writes):
            wanted.update(stage.reads)
            found.append(stage)
    return found[::-1]


def _names(path: str) -> set[str]:
    """Return the names under which a path may be read: the hits of one search, or those of all."""
    return {path, path.partition(".")[0]}
