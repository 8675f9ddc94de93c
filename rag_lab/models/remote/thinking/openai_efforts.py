"""How OpenAI's own reasoning models are asked to think: by an effort, of which the installed langchain-openai knows.

OpenAI says of no effort how many tokens it takes. A budget takes the highest that fits the tokens of `efforts`, and is
the room that is left for thinking. Reasoning models sample as they will, unless their effort is `none` (ChatOpenAI's
documentation).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rag_lab.models.remote.thinking.efforts import TOKENS_OF, highest_within

_USUAL = ("low", "medium", "high")
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True)
class Efforts:
    """What a model can be asked for, the least first; none where it does not reason."""

    levels: tuple[str, ...] = ()
    samples: bool = True  # whether it takes a temperature where it does not reason

    @property
    def least_tokens(self) -> int:
        """Tokens of thinking that it cannot do without."""
        return TOKENS_OF[self.levels[0]] if self.levels else 0

    def effort(self, tokens: int) -> str:
        """Return the highest effort that fits so many tokens of thinking; '' for a model that does not reason."""
        return highest_within(self.levels, tokens) if self.levels else ""

    def takes_sampling(self, effort: str) -> bool:
        """Tell whether a request of this effort may name temperature and top_p."""
        return self.samples and effort in ("", "none")


@cache
def efforts_of(name: str) -> Efforts:
    """Return what OpenAI's model of this name can be asked for; of a name that nobody knows, nothing."""
    from langchain_openai import ChatOpenAI

    profile = ChatOpenAI(model=_DATE.sub("", name), api_key=lambda: "none").profile or {}
    if not profile.get("reasoning_output"):
        return Efforts()
    named = [level for level in TOKENS_OF if level in profile.get("reasoning_effort_levels", _USUAL)]
    return Efforts(tuple(named), bool(profile.get("temperature")))
