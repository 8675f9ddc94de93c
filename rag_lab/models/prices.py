"""What remote models cost, in dollars for a million tokens, from a dated table that the user can correct.

The file is `$RAG_LAB_PRICES`, else `prices.toml` in the home folder; a model that it does not name has the packaged
price. The packaged prices (paid tier, short prompts) were checked against third-party price lists from 2024 to March
2026, not against the providers' own pages: look there before a budget depends on them.
"""

from __future__ import annotations

import logging
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from rag_lab.errors import ConfigError
from rag_lab.home import home

_LOG = logging.getLogger(__name__)

VARIABLE = "RAG_LAB_PRICES"
FILE = "prices.toml"
PACKAGED = "packaged table"
PACKAGED_DATE = "2026-11"

EXAMPLE = """\
checked = 2026-11-30             # when you looked these up
[usd_per_million_tokens]         # read, written (thinking counts as written)
"gemini-2.5-flash" = [0.30, 2.50]
"""

_USD_PER_MILLION: dict[str, tuple[float, float]] = {  # read, written (thinking counts as written)
    "gemini-2.5-pro": (1.25, 10.00),
    "gemini-2.5-flash": (0.30, 2.50),
    "gemini-2.5-flash-lite": (0.10, 0.40),
    "gemini-2.0-flash": (0.10, 0.40),
    "gpt-4o": (2.50, 10.00),
    "gpt-4o-mini": (0.15, 0.60),
    "gpt-4.1": (2.00, 8.00),
    "gpt-4.1-mini": (0.40, 1.60),
    "gpt-4.1-nano": (0.10, 0.40),
}


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens read and written, when that was checked, and which table says so."""

    read_usd: float
    written_usd: float
    checked: str
    table: str

    def cost_usd(self, tokens_in: float, tokens_out: float) -> float:
        """Return what this many tokens cost."""
        return (tokens_in * self.read_usd + tokens_out * self.written_usd) / 1_000_000


def price(model: str) -> Price | None:
    """Return the price of a model, or None where no table has one.

    Raises:
        ConfigError: if the user's table cannot be read.
    """
    return price_table().get(model.removeprefix("models/"))


def price_table() -> dict[str, Price]:
    """Return every known price by the model's name, the user's before the packaged ones.

    Raises:
        ConfigError: if the user's table cannot be read.
    """
    packaged = {name: Price(*pair, PACKAGED_DATE, PACKAGED) for name, pair in _USD_PER_MILLION.items()}
    path = user_file()
    return packaged if path is None else {**packaged, **_read(path, path.stat().st_mtime_ns)}


def user_file() -> Path | None:
    """Return the user's table, or None where there is none.

    Raises:
        ConfigError: if the environment names a file that is not there.
    """
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else home() / FILE
    if path.is_file():
        return path
    if named:
        raise ConfigError(f"${VARIABLE} names {named}, which is no file; give the path of a TOML file, or unset it.")
    return None


def cost_usd(model: str, tokens_in: int, tokens_out: int) -> float:
    """Return what a call cost; 0 for a model without a known price, which is logged once."""
    found = price(model)
    if found is None:
        _say_unknown(model)
        return 0.0
    return found.cost_usd(tokens_in, tokens_out)


@cache
def _read(path: Path, changed_ns: int) -> Mapping[str, Price]:
    """Read a table; `changed_ns` makes an edited file another one to the cache."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is no price table: {error}; write it as TOML:\n{EXAMPLE}") from None
    checked, rows = data.get("checked"), data.get("usd_per_million_tokens")
    if not isinstance(checked, date) or not isinstance(rows, dict) or not all(map(_is_pair, rows.values())):
        raise ConfigError(
            f"{path} is no price table: it needs the date `checked` and, for each model, two prices; as in:\n{EXAMPLE}"
        )
    return {name: Price(float(pair[0]), float(pair[1]), checked.isoformat(), str(path)) for name, pair in rows.items()}


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(each) in (int, float) and math.isfinite(each) and each >= 0 for each in value)
    )


@cache
def _say_unknown(model: str) -> None:
    _LOG.warning("No price is known for the model %s: its calls count as 0 dollars.", model)
