"""The energy that the machine has taken, where a meter can be read: NVIDIA's of each GPU, RAPL's of each processor.

A meter counts all that its device does, also for other programs: measure on a machine that does nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")  # Linux; the packages are intel-rapl:0, intel-rapl:1, …, also of AMD
NO_METER = (
    "no energy meter could be read on this machine (an NVIDIA GPU with the extra rag_lab[energy], or RAPL below "
    "/sys/class/powercap, which on most systems only the administrator may read)"
)


@dataclass(frozen=True, slots=True)
class Meter:
    """A device's counter of joules, which begins anew at `wraps_j` (0: never)."""

    device: str
    read: Callable[[], float]
    wraps_j: float = 0.0

    def since(self, before_j: float) -> float:
        """Return the joules since the counter stood at `before_j`."""
        spent = self.read() - before_j
        return spent + self.wraps_j if spent < 0 else spent


@dataclass(frozen=True, slots=True)
class Energy:
    """A moment from which energy is counted."""

    began: tuple[tuple[Meter, float], ...]

    @classmethod
    def begin(cls) -> Energy:
        """Return this moment."""
        return cls(tuple((meter, meter.read()) for meter in meters()))

    def joules(self) -> float | None:
        """Return what all devices together have taken since; None where no meter can be read."""
        return sum(meter.since(before) for meter, before in self.began) if self.began else None


@cache
def meters() -> tuple[Meter, ...]:
    """Return the meters that can be read here."""
    return (*_of_gpus(), *of_processors(POWERCAP))


def of_processors(folder: Path) -> tuple[Meter, ...]:
    """Return the readable RAPL counters of whole packages, whose parts (cores, memory) they include."""
    found = []
    for package in sorted(folder.glob("intel-rapl:*")):
        counter = package / "energy_uj"
        if package.name.count(":") > 1:  # a part of a package
            continue
        with suppress(OSError, ValueError):
            counter.read_text()
            wraps_j = int((package / "max_energy_range_uj").read_text()) / 1e6
            name = (package / "name").read_text().strip()
            found.append(Meter(name, lambda counter=counter: int(counter.read_text()) / 1e6, wraps_j))  # type: ignore[misc]
    return tuple(found)


def _of_gpus() -> tuple[Meter, ...]:
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
    except Exception:  # no package, no driver, no GPU: each of its own kind
        return ()
    return tuple(meter for handle in handles for meter in _of_gpu(pynvml, handle))


def _of_gpu(pynvml: object, handle: object) -> tuple[Meter, ...]:
    def read() -> float:
        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3  # type: ignore[attr-defined]

    with suppress(Exception):  # older than Volta: it counts nothing
        read()
        return (Meter(str(pynvml.nvmlDeviceGetName(handle)), read),)  # type: ignore[attr-defined]
    return ()
