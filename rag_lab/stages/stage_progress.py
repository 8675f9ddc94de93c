"""How far a stage is, told to whoever watches the run: counts to all, what became of the questions to those who ask."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Literal, Protocol, runtime_checkable

from rag_lab.stages.stage import Outcome

_LOGGER = logging.getLogger(__name__)

Origin = Literal["remembered", "computed", "cheap"]  # cheap: computed each time, since it is quicker than to look up
Progress = Callable[[str, int, int], None]  # stage, traces done, traces to do


@runtime_checkable
class SeesOutcomes(Protocol):
    """A progress that is told of results, too, each once."""

    def saw(self, stage: str, outcomes: Collection[Outcome], origin: Origin) -> None:
        """Take note of results of `stage`; what another process has computed is remembered."""


class StageProgress:
    """Tells `progress`, if there is any, of one stage over `total` traces."""

    def __init__(self, progress: Progress | None, stage: str, total: int, *, remembers: bool) -> None:
        self._progress, self._stage, self._total = progress, stage, total
        self._made: Origin = "computed" if remembers else "cheap"
        self._sees = progress if isinstance(progress, SeesOutcomes) else None
        self._done = 0
        self._seen: set[str] = set()

    def begin(self, known: Mapping[str, Outcome]) -> None:
        """Tell that the stage begins, with what is known of it."""
        self._saw(known, "remembered")
        _LOGGER.info("%s begins: %d of %d questions are remembered", self._stage, len(known), self._total)
        self.tell(len(known), "")

    def computed(self, new: Mapping[str, Outcome]) -> None:
        """Tell of results as soon as they are there."""
        self._saw(new, self._made)

    def tell(self, new: int, waits: str) -> None:
        """Tell that so many more traces are done, and for whom the stage waits."""
        self._done += new
        if self._progress:
            self._progress(self._stage + waits, self._done, self._total)

    def end(self, all_of_it: Mapping[str, Outcome]) -> None:
        """Tell of what other processes have computed meanwhile."""
        self._saw({key: one for key, one in all_of_it.items() if key not in self._seen}, "remembered")

    def _saw(self, outcomes: Mapping[str, Outcome], origin: Origin) -> None:
        self._seen |= outcomes.keys()
        if self._sees and outcomes:
            self._sees.saw(self._stage, outcomes.values(), origin)
