"""How long calls take and how many tokens they have, as measured on this machine by the sweeps that ran on it.

One file in the home folder holds sums by host, stage or metric, and model. It can be deleted: it is measured again.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from filelock import FileLock
from pydantic import Field, TypeAdapter, ValidationError

_LOGGER = logging.getLogger(__name__)

RATES_FILE = "rates_2.json"  # the number grows when what a unit is changes
Key = tuple[str, str]  # stage or metric, model


@dataclass(frozen=True, slots=True)
class Rate:
    """Sums over `n` units of work (calls, pairs, questions; see `Work`)."""

    purpose: str
    model: str
    n: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def key(self) -> Key:
        """What the rate is of."""
        return self.purpose, self.model

    def seconds_of(self, n: int) -> float:
        """Return the seconds that `n` units take by this rate."""
        return self.seconds / self.n * n

    def tokens_of(self, n: int) -> tuple[int, int]:
        """Return the tokens that `n` units read and write by this rate."""
        return round(self.tokens_in / self.n * n), round(self.tokens_out / self.n * n)

    def plus(self, other: Rate) -> Rate:
        """Return both together."""
        return Rate(
            self.purpose,
            self.model,
            self.n + other.n,
            self.seconds + other.seconds,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
        )


_FILE = TypeAdapter(dict[str, list[Rate]])  # by host


def read_rates(home: Path) -> dict[Key, Rate]:
    """Return what was measured on this host; nothing where the file is missing or broken."""
    return {rate.key: rate for rate in _read(home / RATES_FILE).get(platform.node(), [])}


def add_rates(home: Path, measured: Iterable[Rate]) -> None:
    """Add to what was measured on this host; sweeps may do so at the same time."""
    path = home / RATES_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        hosts = _read(path)
        known = {rate.key: rate for rate in hosts.get(platform.node(), [])}
        for rate in measured:
            known[rate.key] = known[rate.key].plus(rate) if rate.key in known else rate
        partial = path.with_suffix(".partial")
        partial.write_bytes(_FILE.dump_json({**hosts, platform.node(): list(known.values())}, indent=1))
        partial.replace(path)


def _read(path: Path) -> dict[str, list[Rate]]:
    if not path.is_file():
        return {}
    try:
        return _FILE.validate_json(path.read_bytes())
    except ValidationError:
        _LOGGER.warning("%s cannot be read: rates are measured anew.", path)
        return {}
