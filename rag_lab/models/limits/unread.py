"""How much of many texts a model reads, as numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NOTICED = 0.02  # of what is read: less decides no comparison


@dataclass(frozen=True, slots=True)
class Unread:
    """The lengths of `n` texts for one model, which reads `limit` tokens of each."""

    limit: int
    n: int
    n_longer: int
    characters: int  # of all of them
    tokens: int  # of all of them, what the model puts around them included
    unread_tokens: int  # of these, beyond the limit

    @classmethod
    def of(cls, tokens: Sequence[int], characters: int, limit: int) -> Unread:
        """Return the numbers of texts that have so many tokens each."""
        beyond = [n - limit for n in tokens if n > limit]
        return cls(limit, len(tokens), len(beyond), characters, sum(tokens), sum(beyond))

    @property
    def share_longer(self) -> float:
        """The share of the texts that are longer than the model reads."""
        return self.n_longer / self.n if self.n else 0.0

    @property
    def share_unread(self) -> float:
        """The share of all tokens that the model never reads."""
        return self.unread_tokens / self.tokens if self.tokens else 0.0

    @property
    def characters_read(self) -> int:
        """How many characters of such texts the model reads, about."""
        return round(self.limit * self.characters / self.tokens / 10) * 10 if self.tokens else 0

    def told(self, whose: str, model: str) -> str:
        """Say how many are cut and what is lost: `61% of the chunks are longer than minilm reads (256 tokens), ...`."""
        return (
            f"{percent(self.share_longer)} of {whose} are longer than {short_name(model)} reads ({self.limit:,} "
            f"tokens, here about {self.characters_read:,} characters)"
        )


def percent(share: float) -> str:
    """Write a share: `61%`, `0.4%`; what is there is never `0%`, nor all `100%` where something is not."""
    if not 0 < share < 1:
        return f"{share:.0%}"
    if share < 0.01:
        return f"{max(share, 0.001):.1%}"
    return f"{min(share, 0.99):.0%}" if share >= 0.985 else f"{share:.0%}"


def short_name(model: str) -> str:
    """Return a model's name without provider and options: `minilm`."""
    return model.partition(":")[2].partition("?")[0] or model
