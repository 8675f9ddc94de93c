"""How much a Gemini model is asked to think: tokens up to version 2.5, a level since version 3.

Budgets are those of the Gemini API's page "Thinking": 2.5 Pro 128 to 32,768, and it cannot stop; 2.5 Flash up to
24,576, or none; 2.5 Flash-Lite 512 to 24,576, or none. Levels are those that langchain-google-genai's profiles name by
model; for the tokens that they stand for see `efforts`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rag_lab.models.remote.thinking.efforts import TOKENS_OF, highest_within

_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class GeminiThinking:
    """What one model can be asked for: a budget from `smallest` to `largest` tokens, or one of `levels`."""

    smallest: int
    largest: int
    can_stop: bool = False
    levels: tuple[str, ...] = ()

    @property
    def least_tokens(self) -> int:
        """Tokens of thinking that it cannot do without."""
        return 0 if self.can_stop else self.smallest

    def options(self, tokens: int) -> dict[str, Any]:
        """Return the client's options for so many tokens of thinking; what is below the smallest budget is that."""
        shown: dict[str, Any] = {"include_thoughts": True} if tokens else {}
        if self.levels:
            return {"thinking_level": highest_within(self.levels, tokens), **shown}
        return {"thinking_budget": max(tokens, self.smallest) if tokens else 0, **shown}


def gemini_thinking(name: str) -> GeminiThinking | None:
    """Return how the model of this name is asked to think; None for one that does not think."""
    family = name.removeprefix("models/").lower()
    found = _VERSION.match(family)
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    if "flash" in family or "pro" in family:
        version = version if found else (3, 0)  # `gemini-flash-latest`
    if version < (2, 5):
        return None
    if version == (2, 5):
        return _of_2_5(family)
    levels = _levels(family)
    return GeminiThinking(TOKENS_OF[levels[0]], 65_536, levels=levels)


def _of_2_5(family: str) -> GeminiThinking:
    if "pro" in family:
        return GeminiThinking(128, 32_768)
    return GeminiThinking(512 if "lite" in family else 1, 24_576, can_stop=True)


def _levels(family: str) -> tuple[str, ...]:
    if "flash" in family:
        return ("minimal", "low", "medium", "high")
    return ("low", "high") if family.startswith("gemini-3-pro") else ("low", "medium", "high")
