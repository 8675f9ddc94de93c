"""The contract of a stage: a function on a batch of traces, described by frozen parameters.

What can change a stage's result is all in `identity()` and in the trace fields named by `reads`, so that the store can
remember it for each question. A stage's constructor only stores; models load on the first `run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rag_lab.records import MachineUse, StageStatus, Trace


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage did to one trace.

    `updates` maps trace fields, or `hits.<search>`, to their new values: a subset of the stage's `writes`. `seconds`
    is None where the stage cannot tell one question's share of a batch; the runner then divides the batch's time
    evenly. Of them `replayed_s` were spent earlier, on what this result shares with others (`Replayed`).
    `lasting` is False for what another attempt may cure (a rate limit, a time-out): the store does not remember it.
    """

    updates: Mapping[str, Any] = field(default_factory=dict)
    status: StageStatus = "ok"
    reason: str = ""
    seconds: float | None = None
    replayed_s: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    thinking_tokens: int = 0
    truncated_tokens: int = 0
    cost_usd: float = 0.0
    machine: MachineUse | None = None
    lasting: bool = True


class Stage(Protocol):
    """One step of the pipeline. `off` is a stage too, so an ablation is a value and never an `if`."""

    @property
    def name(self) -> str:
        """The step's name on the trace, e.g. `rerank`."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Trace fields that the result depends on; dotted for one of the question's, or one search's: `hits.bm25`."""

    @property
    def writes(self) -> tuple[str, ...]:
        """Trace fields that the stage may set; dotted for the hits of one search."""

    @property
    def batch_size(self) -> int:
        """How many traces one `run` takes; results are saved after each batch, so a kill loses one batch at most."""

    @property
    def costly(self) -> bool:
        """Whether results are worth remembering; what is quicker to compute than to look up is always computed."""

    def identity(self) -> Mapping[str, Any]:
        """Everything else that can change the result, as JSON values: version, parameters, model, prompt."""

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return one outcome for each trace, in order.

        Raises:
            RagLabError: if the stage cannot work at all (a model that does not load). What concerns one question is
                an outcome with status `fallback` or `failed` and a reason, never an exception.
        """
