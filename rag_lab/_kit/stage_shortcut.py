"""`@stage("reranker", version=1, timeout_s=5)`: what a function says of itself, as a class says it in its body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def stage(kind: str, *, version: int = 1, **said: Any) -> Callable[[F], F]:
    """Mark a function as a module of one kind.

    Args:
        kind: `reranker`, `search`, `fusion`, `reader`, ...: it stands nowhere else.
        version: to be raised by hand where its results change for a reason that is not in its file.
        said: `timeout_s`, `deterministic`, `files`; see `OwnCode`.
    """

    def mark(function: F) -> F:
        vars(function).update({"stage_kind": kind, "version": version, **said})
        return function

    return mark
