"""A limit on money can be kept only where every model that costs money has a price."""

from __future__ import annotations

from collections.abc import Iterable

from rag_lab.errors import ModelError
from rag_lab.experiment.config import Limits
from rag_lab.models.prices import EXAMPLE, price, user_file

CHAT_ROLES = ("understanding", "hyde", "generation", "judge")


def limit_problems(limits: Limits, models: Iterable[tuple[str, str]]) -> list[str]:
    """Return why a limit cannot be kept, one sentence each; `models` are the roles with their models."""
    if limits.cost_usd is None:
        return []
    problems = []
    for spec in sorted({spec for role, spec in models if role in CHAT_ROLES}):
        try:
            name = priced_name(spec)
        except ModelError:
            continue  # told elsewhere
        if name and price(name) is None:
            where = user_file() or "a file prices.toml in the home folder"
            problems.append(
                f"limits.cost_usd needs a price for {spec}, and none is known; add one to {where}:\n{EXAMPLE}"
            )
    return problems


def priced_name(spec: str) -> str:
    """Return the name under which a chat model's price is found, or '' where its calls cost nothing.

    Raises:
        ModelError: if there is no such model.
    """
    from rag_lab.models import registry

    model = registry.chat_model(spec)
    return str(getattr(model, "name", "")) if getattr(model, "priced", False) else ""
