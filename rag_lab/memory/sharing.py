"""Sharing work between processes: claim, compute, wait. What one computes, others take from the memory."""

import logging
import os
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from rag_lab.memory.results import Memory, batches

Result = TypeVar("Result")
Report = Callable[[int, str], object]  # results that are new, and ` waits for …` where that takes long

RETRY_VARIABLE = "RAG_LAB_RETRY_FAILED"
_LOGGER = logging.getLogger(__name__)
_WAIT_S = 0.2
_TELL_AFTER_S = 10.0


def retries_failed() -> bool:
    """Tell whether the sweep asks its kernels to try again what failed for good."""
    return os.environ.get(RETRY_VARIABLE) == "1"


@dataclass(frozen=True, slots=True)
class Work(Generic[Result]):
    """Results that can be computed and remembered."""

    room: str  # what they are called in the memory, and where somebody waits for them
    compute: Callable[[list[str]], Mapping[str, Result]]
    encode: Callable[[Result], str | None]  # None where nothing is remembered: another attempt may do better
    decode: Callable[[str], Result]
    batch_size: int  # how many are claimed and computed at a time; a kill loses as many at most

    def recall(self, memory: Memory | None, keys: Collection[str]) -> dict[str, Result]:
        """Return those results that are remembered."""
        return {key: self.decode(text) for key, text in memory.recall(keys).items()} if memory else {}

    def again(self, memory: Memory | None, failed: Collection[str]) -> dict[str, Result]:
        """Return another attempt at results that failed; each replaces what was remembered once it is there.

        So a kill in between leaves what was. What is no better to remember leaves it, too.
        """
        found: dict[str, Result] = {}
        for keys in batches(failed, self.batch_size):
            found |= self._computed(memory, keys) if memory else self.compute(keys)
        return found

    def do(
        self, memory: Memory | None, missing: Collection[str], report: Report = lambda n, waits: None
    ) -> dict[str, Result]:
        """Return a result for each of `missing`; several processes that miss the same compute each once."""
        if memory is not None:
            return self._share(memory, missing, report)
        found: dict[str, Result] = {}
        for keys in batches(missing, self.batch_size):
            found |= self.compute(keys)
            report(len(keys), "")
        return found

    def _share(self, memory: Memory, missing: Collection[str], report: Report) -> dict[str, Result]:
        found: dict[str, Result] = {}
        waited_s, waits = 0.0, ""
        while todo := [key for key in missing if key not in found]:
            if mine := memory.claim(todo, self.batch_size):
                with memory.keeping(mine):
                    new = self._computed(memory, mine)
            else:
                new = self.recall(memory, todo)
            if not new:
                time.sleep(_WAIT_S)
                waited_s += _WAIT_S
                if waited_s >= _TELL_AFTER_S and not waits:
                    waits = f" waits for {', '.join(map(str, memory.holders(todo)))}"
                    _LOGGER.warning("%s%s, which computes the same results.", self.room, waits)
            report(len(new), "" if new else waits)
            found |= new
        return found

    def _computed(self, memory: Memory, keys: list[str]) -> dict[str, Result]:
        results = dict(self.compute(keys))
        texts = {key: self.encode(result) for key, result in results.items()}
        memory.store(self.room, {key: text for key, text in texts.items() if text is not None})
        return results
