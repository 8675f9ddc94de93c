"""What a model takes of this machine: time and memory to load, memory and energy for each call."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from rag_lab._kit.machine import Energy, begin_peak, peak_since_mb, resident_mb
from rag_lab.records import MachineUse

Result = TypeVar("Result")


@dataclass
class MachineMeter:
    """Measures one model. Its memory is what the process grew by while it loaded, and the most that calls added."""

    load_s: float | None = None
    loaded_mb: float | None = None
    called_mb: float = 0.0

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Measure what is done within as the loading of the weights."""
        before, started = _held(), time.perf_counter()
        yield
        self.load_s = time.perf_counter() - started
        after = _held()
        self.loaded_mb = None if before is None or after is None else max(after - before, 0.0)

    def measured(self, call: Callable[[], Result]) -> tuple[Result, MachineUse]:
        """Return what `call` returns, and what the model has taken with it."""
        before, energy = _held(), Energy.begin()
        _begin_peak()
        result = call()
        joules, peak = energy.joules(), _peak()
        if self.loaded_mb is None or before is None or peak is None:
            return result, MachineUse(self.load_s, None, joules)
        self.called_mb = max(self.called_mb, peak - before)
        return result, MachineUse(self.load_s, self.loaded_mb + self.called_mb, joules)


def _held() -> float | None:
    held = resident_mb()
    return None if held is None else held + (_cuda().memory_allocated() / 2**20 if _cuda() else 0.0)


def _begin_peak() -> None:
    begin_peak()
    if _cuda():
        _cuda().reset_peak_memory_stats()


def _peak() -> float | None:
    peak = peak_since_mb()
    return None if peak is None else peak + (_cuda().max_memory_allocated() / 2**20 if _cuda() else 0.0)


def _cuda() -> Any:
    """Return torch's view of the GPU where this process uses it, else None."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
