"""A trace that knows whether the records of its stages were read: their numbers differ from run to run."""

from __future__ import annotations

from typing import Any

from rag_lab.records import StageRecord, Trace


class WatchedTrace(Trace):
    """A trace that notes when its `stages` are read, also by way of `failure` and `curable`."""

    __slots__ = ("stages_read",)
    stages_read: bool

    def __init__(self, *values: Any, **named: Any) -> None:
        object.__setattr__(self, "stages_read", False)
        super().__init__(*values, **named)

    @property
    def stages(self) -> tuple[StageRecord, ...]:
        """The records of the stages."""
        object.__setattr__(self, "stages_read", True)
        return _SLOT.__get__(self)  # type: ignore[no-any-return]

    @stages.setter
    def stages(self, value: tuple[StageRecord, ...]) -> None:
        _SLOT.__set__(self, value)


_SLOT: Any = Trace.__dict__["stages"]
