"""How long a call takes and how many tokens it has, as the latest sweep that made such calls has measured it.

One file in the home folder. It can be deleted: it is measured again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from filelock import FileLock
from pydantic import Field, TypeAdapter, ValidationError

from rag_lab._kit.whole_file import whole_file

_LOGGER = logging.getLogger(__name__)

RATES_FILE = "rates_3.json"  # the number grows when the format changes
Key = tuple[str, str]  # stage or metric, model


@dataclass(frozen=True, slots=True)
class Rate:
    """Sums over `n` calls for one stage or metric."""

    purpose: str
    model: str
    n: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    tokens_in: int = 0
    tokens_out: int = 0


_FILE = TypeAdapter(list[Rate])


def read_rates(home: Path) -> dict[Key, Rate]:
    """Return what was measured; nothing where the file is missing or broken."""
    path = home / RATES_FILE
    try:
        rates = _FILE.validate_json(path.read_bytes()) if path.is_file() else []
    except ValidationError:
        _LOGGER.warning("%s cannot be read: rates are measured anew.", path)
        rates = []
    return {(rate.purpose, rate.model): rate for rate in rates}


def keep_rates(home: Path, measured: Iterable[Rate]) -> None:
    """Keep what a sweep has measured, in place of what was known of the same; sweeps may do so at the same time."""
    path = home / RATES_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        known = read_rates(home) | {(rate.purpose, rate.model): rate for rate in measured}
        with whole_file(path) as partial:
            partial.write_bytes(_FILE.dump_json(list(known.values()), indent=1))
