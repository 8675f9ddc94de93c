"""How many tokens of thinking the words by which models are asked to think stand for.

No provider says how many an effort or a level takes: we go by what Google's OpenAI interface turns low, medium and
high into, and leave 128 for `minimal`, which "matches no thinking for most queries".
"""

from __future__ import annotations

from collections.abc import Sequence

TOKENS_OF = {"none": 0, "minimal": 128, "low": 1024, "medium": 8192, "high": 24_576}


def highest_within(levels: Sequence[str], tokens: int) -> str:
    """Return the highest of `levels`, the least first, that fits so many tokens of thinking; the least if none does.

    So thinking does not take the reply's room.
    """
    fitting = [level for level in levels if TOKENS_OF[level] <= tokens]
    return fitting[-1] if fitting else levels[0]
