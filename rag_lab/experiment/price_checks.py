"""A limit on money can be kept only where every model that costs money has a price."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from rag_lab.errors import ModelError
from rag_lab.experiment.config import Limits
from rag_lab.models.prices import EXAMPLE, Price, price, user_file

CHAT_ROLES = ("understanding", "hyde", "generation", "judge")


def limit_problems(limits: Limits, models: Iterable[tuple[str, str]]) -> list[str]:
    """Return why a limit cannot be kept, one sentence each; `models` are the roles with their models."""
    if limits.cost_usd is None:
        return []
    problems = []
    for spec in sorted({spec for role, spec in models if role in CHAT_ROLES}):
        try:
            is_unknown = price_of(spec) is None
        except ModelError:
            continue  # told elsewhere
        if is_unknown:
            where = user_file() or "a file prices.toml in the home folder"
            problems.append(
                f"limits.cost_usd needs a price for {spec}, and none is known; add one to {where}:\n{EXAMPLE}"
            )
    return problems


def price_of(spec: str) -> Price | Literal["free"] | None:
    """Return the price of a chat model's calls, 'free' where they cost nothing, None where no table has a price.

    Raises:
        ModelError: if there is no such model.
        ConfigError: if the user's price table cannot be read.
    """
    from rag_lab.models import shared

    model: Any = shared.chat_model(spec)
    return price(model.provider, model.name) if getattr(model, "priced", False) else "free"
