"""What scoring would ask of models, found out without asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab.evaluation.judge.calls import CALLS
from rag_lab.evaluation.metric import FIELDS, CostlyMetric, Metric
from rag_lab.evaluation.remembered import score_key
from rag_lab.experiment.forecast.foreseen_work import Tally, Work
from rag_lab.experiment.forecast.foresight import Foreseen
from rag_lab.experiment.forecast.stand_ins import counted_tokens
from rag_lab.memory.results import Memory

MOST_REPLY_TOKENS = 1024  # of a judge, for RAGAs' prompts


@dataclass(frozen=True)
class ScoreForesight:
    """Puts the calls of a metric in `tally`; `judge` is the name of the model that it may ask."""

    memory: Memory
    tally: Tally
    judge: str

    def foresee(self, metric: Metric, traces: Sequence[Foreseen]) -> None:
        """Count the scores of `metric` that must be made; one that asks no judge is not counted."""
        if not isinstance(metric, CostlyMetric) or "judge" not in metric.needs:
            return
        identity = digest(dict(metric.identity()))
        keyed = {key: each for each in traces if (key := _key(metric, identity, each)) is not None}
        known = self.memory.recall(keyed)
        nothing = Work(metric.name, self.judge, "call")
        for key, each in keyed.items():
            if self.tally.is_new(key):
                self.tally.add(replace(nothing, remembered=1) if key in known else _work(nothing, metric, each))


def _work(nothing: Work, metric: CostlyMetric, each: Foreseen) -> Work:
    calls = CALLS[metric.name]
    n = calls.of(len(each.trace.passages))
    texts = sum(map(counted_tokens, _texts(metric.reads(each.trace))))
    tokens_in = n * (calls.prompt_tokens + texts)
    # At most: scores that ask the judge the same thing share its reply.
    return replace(nothing, n=n, at_most=True, tokens_in=tokens_in, tokens_out=n * MOST_REPLY_TOKENS)


def _key(metric: CostlyMetric, identity: str, each: Foreseen) -> str | None:
    key, waits = score_key(metric, identity, each.trace), _waits_for(metric, each)
    return digest([key, waits]) if key is not None and waits else key


def _waits_for(metric: Metric, each: Foreseen) -> dict[str, str]:
    """Return the open fields that the score depends on, with the keys that stand for them."""
    fields = (field for need, field in FIELDS.items() if need in metric.needs)
    return {field: each.open[field] for field in fields if field in each.open}


def _texts(value: Any) -> list[str]:
    """Return the texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, Sequence) else ()
    return [text for each in inner for text in _texts(each)]
