"""What is being worked at: the variant, the stage and the questions, for whatever is said meanwhile.

Threads that work for a stage are started in a copy of its context (`contextvars.copy_context`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

MOST = 8  # questions of a batch that are named


@dataclass(frozen=True, slots=True)
class WorkContext:
    """Ids of the variant and of the questions at work, and the stage; '' and none where there are none."""

    variant: str = ""
    stage: str = ""
    questions: tuple[str, ...] = ()


_NOTHING = WorkContext()
_now: ContextVar[WorkContext] = ContextVar("rag_lab_work", default=_NOTHING)


def work_now() -> WorkContext:
    """Return what this thread works at."""
    return _now.get()


@contextmanager
def working(
    variant: str | None = None, stage: str | None = None, questions: Sequence[str] | None = None
) -> Iterator[None]:
    """Work at this in the block; None leaves what is around it."""
    around = _now.get()
    ids = around.questions if questions is None else tuple(questions[:MOST])
    one = WorkContext(around.variant if variant is None else variant, around.stage if stage is None else stage, ids)
    token = _now.set(one)
    try:
        yield
    finally:
        _now.reset(token)
