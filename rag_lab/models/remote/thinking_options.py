"""How remote models are asked to think, and stopped: budgets and levels of Gemini, efforts of OpenAI and gpt-oss.

No provider says how many tokens an effort or a level takes: we go by what Google's OpenAI interface turns low, medium
and high into, and leave 128 for `minimal`, which "matches no thinking for most queries".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

TOKENS_OF = {"none": 0, "minimal": 128, "low": 1024, "medium": 8192, "high": 24_576}
_USUAL = ("low", "medium", "high")
_GEMINI_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def highest_within(levels: Sequence[str], tokens: int) -> str:
    """Return the highest of `levels`, the least first, that fits so many tokens of thinking; the least if none does.

    So thinking does not take the reply's room.
    """
    fitting = [level for level in levels if TOKENS_OF[level] <= tokens]
    return fitting[-1] if fitting else levels[0]


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
    found = _GEMINI_VERSION.match(family)
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    if "flash" in family or "pro" in family:
        version = version if found else (3, 0)  # `gemini-flash-latest`
    if version < (2, 5):
        return None
    if version == (2, 5):
        if "pro" in family:
            return GeminiThinking(128, 32_768)
        return GeminiThinking(512 if "lite" in family else 1, 24_576, can_stop=True)
    if "flash" in family:
        return GeminiThinking(TOKENS_OF["minimal"], 65_536, levels=("minimal", *_USUAL))
    levels = ("low", "high") if family.startswith("gemini-3-pro") else _USUAL
    return GeminiThinking(TOKENS_OF["low"], 65_536, levels=levels)


@dataclass(frozen=True, slots=True)
class Efforts:
    """What a model can be asked for, the least first; none where it does not reason."""

    levels: tuple[str, ...] = ()
    samples: bool = True  # whether it takes a temperature where it does not reason


@cache
def efforts_of(name: str) -> Efforts:
    """Return what OpenAI's model of this name can be asked for; of a name that nobody knows, nothing."""
    from langchain_openai import ChatOpenAI

    profile = ChatOpenAI(model=_DATE.sub("", name), api_key=lambda: "none").profile or {}
    if not profile.get("reasoning_output"):
        return Efforts()
    named = [level for level in TOKENS_OF if level in profile.get("reasoning_effort_levels", _USUAL)]
    return Efforts(tuple(named), bool(profile.get("temperature")))


def level_of(name: str, tokens: int) -> str:
    """Return the highest level of an Ollama model for so many tokens, `low` at the least; '' for one without levels."""
    has_levels = name.rpartition("/")[2].startswith("gpt-oss")
    return highest_within(_USUAL, tokens) if has_levels else ""
