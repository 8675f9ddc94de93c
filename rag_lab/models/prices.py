"""What remote models cost: by the user's dated table, else by the prices that `genai-prices` packages.

The table is `$RAG_LAB_PRICES`, else `prices.toml` in the home folder. The packaged prices (paid tier,
nothing cached) are those of the installed version, and nothing is ever fetched: look at the provider's own page
before a budget depends on them.
"""

import logging
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, Strict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rag_lab._kit.home import home
from rag_lab.errors import ConfigError

_LOG = logging.getLogger(__name__)
_UNPRICED: set[str] = set()  # models of which that was logged
VARIABLE = "RAG_LAB_PRICES"
FILE = "prices.toml"
# Of our providers and LangChain's: the name that genai-prices gives it, where that is another one.
_SERVICES = {"gemini": "google", "google_genai": "google", "google_vertexai": "google", "mistralai": "mistral"}

EXAMPLE = """\
checked = 2026-11-30             # when you looked these up
[usd_per_million_tokens]         # read, written (thinking counts as written)
"gemini-2.5-flash" = [0.30, 2.50]
"""


_Usd = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


class _Table(TypedDict):
    checked: Annotated[date, Strict()]
    usd_per_million_tokens: dict[str, tuple[_Usd, _Usd]]


_TABLE = TypeAdapter(_Table)


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's calls cost, by which table, and as of which day: the table's, or of packaged prices the newest."""

    of: Any  # a `ModelPrice` of genai-prices
    checked: str
    table: str

    def cost_usd(self, tokens_in: float, tokens_out: float, calls: int = 1) -> float:
        """Return what this many tokens cost in so many calls of equal length: a long prompt may have another price."""
        from genai_prices import Usage

        n = max(1, calls)
        return n * float(
            self.of.calc_price(Usage(input_tokens=tokens_in / n, output_tokens=tokens_out / n))["total_price"]
        )


def price(provider: str, model: str, *, writes: bool = True) -> Price | None:
    """Return the price of a provider's model, the user's first, or None; one that only reads needs none for writing."""
    name = model.removeprefix("models/")
    if of_user := user_prices().get(name):
        return of_user
    from genai_prices import __version__
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(name, None, _SERVICES.get(provider, provider), None)
    except LookupError:
        return None
    today = found.get_prices(datetime.now(UTC))
    if today.input_mtok is None or (writes and today.output_mtok is None):
        return None
    return Price(today, _newest_change(), f"genai-prices {__version__}")


def user_prices() -> Mapping[str, Price]:
    """Return the prices in the user's table by the model's name; none where there is no table."""
    path = user_file()
    return {} if path is None else _read(path, path.stat().st_mtime_ns)


def user_file() -> Path | None:
    """Return the user's table, or None where there is none; see `user_prices`."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else home() / FILE
    if path.is_file():
        return path
    if named:
        raise ConfigError(f"${VARIABLE} names {named}, which is no file; give the path of a TOML file, or unset it.")
    return None


def cost_usd(provider: str, model: str, tokens_in: int, tokens_out: int) -> float:
    """Return what a call cost; 0 for a model without a known price, which is logged once."""
    found = price(provider, model)
    if found is None:
        if model not in _UNPRICED:
            _UNPRICED.add(model)
            _LOG.warning("No price is known for the model %s: its calls count as 0 dollars.", model)
        return 0.0
    return found.cost_usd(tokens_in, tokens_out)


@cache
def _newest_change() -> str:
    from genai_prices.data import providers
    from genai_prices.types import StartDateConstraint

    listed = (model.prices for provider in providers for model in provider.models if isinstance(model.prices, list))
    limits = (each.constraint for prices in listed for each in prices)
    starts = (limit.start_date for limit in limits if isinstance(limit, StartDateConstraint))
    return max(start for start in starts if start <= datetime.now(UTC).date()).isoformat()


@cache
def _read(path: Path, changed_ns: int) -> Mapping[str, Price]:
    """Read a table; `changed_ns` makes an edited file another one to the cache."""
    from genai_prices.types import ModelPrice

    try:
        table = _TABLE.validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is no price table: {error}; write it as TOML:\n{EXAMPLE}") from None
    except ValidationError:
        raise ConfigError(
            f"{path} is no price table: it needs the date `checked` and, for each model, two prices; as in:\n{EXAMPLE}"
        ) from None
    return {
        name: Price(
            ModelPrice(input_mtok=Decimal(str(read_usd)), output_mtok=Decimal(str(written_usd))),
            table["checked"].isoformat(),
            str(path),
        )
        for name, (read_usd, written_usd) in table["usd_per_million_tokens"].items()
    }
