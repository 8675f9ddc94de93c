"""Models of Ollama that think by a level and cannot stop: gpt-oss takes `low`, `medium` or `high`, no yes or no.

For the tokens that a level stands for see `thinking.efforts`.
"""

from __future__ import annotations

from rag_lab.models.remote.thinking.efforts import TOKENS_OF, highest_within

_LEVELS = ("low", "medium", "high")
_FAMILY = "gpt-oss"


def least_tokens(name: str) -> int:
    """Return the tokens of thinking that a model cannot do without."""
    return TOKENS_OF["low"] if _has_levels(name) else 0


def level_of(name: str, tokens: int) -> str:
    """Return the highest level that fits so many tokens of thinking, `low` at the least; '' where a model has none."""
    return highest_within(_LEVELS, tokens) if _has_levels(name) else ""


def _has_levels(name: str) -> bool:
    return name.rpartition("/")[2].startswith(_FAMILY)
