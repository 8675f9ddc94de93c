"""What remote models cost, in dollars for a million tokens (paid tier, short prompts).

Checked in 2026-11 against third-party price lists from 2024 to March 2026, not against the providers' own pages: look
there before a budget depends on it.
"""

from __future__ import annotations

import logging
from functools import cache

_LOG = logging.getLogger(__name__)

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


def cost_usd(model: str, tokens_in: int, tokens_out: int) -> float:
    """Return what a call cost; 0 for a model without a known price, which is logged once."""
    price = _USD_PER_MILLION.get(model.removeprefix("models/"))
    if price is None:
        _say_unknown(model)
        return 0.0
    return (tokens_in * price[0] + tokens_out * price[1]) / 1_000_000


@cache
def _say_unknown(model: str) -> None:
    _LOG.warning("No price is known for the model %s: its calls count as 0 dollars.", model)
