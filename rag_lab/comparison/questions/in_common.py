"""What several variants have in common is kept once, with their letters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Shared:
    """Something several variants have in common. `who` are their letters, `everyone` is set where it is all of them."""

    who: tuple[str, ...]
    everyone: bool
    value: Any


def share(items: Iterable[tuple[str, Any]], total: int) -> tuple[Shared, ...]:
    """Group (letter, value) pairs by value, in order of first appearance; `total` letters are everyone."""
    groups: dict[Any, list[str]] = {}
    for letter, value in items:
        groups.setdefault(value, []).append(letter)
    return tuple(Shared(tuple(who), len(who) == total and total > 1, value) for value, who in groups.items())
