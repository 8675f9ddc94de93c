"""Second runs of variants on idle cores of a Ray cluster: the two share each stage batch by batch, by the store.

Whoever is free claims the next batch of a stage that is remembered (see `memory/sharing`); the other takes its results
from there. What counts is what the variant's own task hands in; what helped it is ended then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any


class Helpers:
    """The second runs of one sweep's variants.

    Args:
        ray: Ray, connected.
        start: starts one for the variant of a name, and returns its reference.
    """

    def __init__(self, ray: Any, start: Callable[[str], Any]) -> None:
        self._ray, self._start = ray, start
        self._names: dict[Any, str] = {}  # of their variants, by reference
        self._sent = Counter[str]()

    def look(self, open_names: Collection[str], n_cores: int) -> None:
        """Send help where a core is idle, to the variant that was sent least; end the help of those not open any more.

        A variant is sent each other core once: one that sees no store of the variant's is of no help a second time.
        """
        over = [one for one, name in self._names.items() if name not in open_names]
        self._end(over)
        waited_for = [*self._names]
        for one in self._ray.wait(waited_for, num_returns=len(waited_for), timeout=0)[0] if waited_for else []:
            del self._names[one]
        for _ in range(n_cores - len(open_names) - len(self._names)):
            name = min(open_names, key=self._sent.__getitem__, default=None)
            if name is None or self._sent[name] >= n_cores - 1:
                return
            self._sent[name] += 1
            self._names[self._start(name)] = name

    def close(self) -> None:
        """End all."""
        self._end([*self._names])

    def _end(self, some: Collection[Any]) -> None:
        for one in some:
            del self._names[one]
            with suppress(Exception):  # the cluster may be gone
                self._ray.cancel(one, force=True)
