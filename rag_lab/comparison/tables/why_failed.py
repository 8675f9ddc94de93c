"""Why an answer is wrong, by the counterfactual: the same reader with the labelled evidence alone, and on top.

*Missing*: the reader is right with the evidence alone, and right where it stands on top of what was found. *Crowded
out*: right with the evidence alone, and wrong with what was found below it. *Ignored*: wrong with the evidence alone.
Without a variant that reads both, evidence that reached the reader was crowded out, and other evidence was missing.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from rag_lab.comparison.tables.bounds import BOTH, CEILING, answer_metrics, bound_arms, bound_of
from rag_lab.comparison.tables.evidence import Waterfall
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.summaries import per_question

Cause = Literal["missing", "crowded out", "ignored"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
_REACHED = {"used", "unused", "not_answered"}  # states of evidence that the reader had


@dataclass(frozen=True)
class WhyFailed:
    """The causes of wrong answers by variant and question, in the order of the tables; empty without a bound.

    metric: the first that reads answers on a scale with two ends; an answer is wrong in its worse half.
    middle: of that scale.
    """

    metric: str = ""
    middle: float = 0.0
    causes: Mapping[tuple[str, str], Cause] = field(default_factory=dict, repr=False)

    def counts(self, variant_id: str) -> Counter[Cause]:
        """Return how many wrong answers of a variant have each cause."""
        return Counter(cause for (variant, _), cause in self.causes.items() if variant == variant_id)


def why_failed(tables: RunTables, evidence: Waterfall) -> WhyFailed:
    """Return the cause of each wrong answer to a question with labelled evidence, where a bound tells it."""
    scales = {metric: tables.scales.get(metric) for metric in answer_metrics(tables)}
    ends = {m: (s.low, s.high) for m, s in scales.items() if s and s.low is not None and s.high is not None}
    arms = bound_arms(tables)
    if not ends or CEILING not in arms.values():
        return WhyFailed()
    metric, (low, high) = next(iter(ends.items()))
    middle, sign = (low + high) / 2, tables.sign(metric)
    cells = per_question(tables.scores, [metric]).dropna(subset=["mean"])
    columns = (cells[name].tolist() for name in ("variant_id", "question_id", "mean"))
    right = {(one, question): sign * (mean - middle) > 0 for one, question, mean in zip(*columns, strict=True)}
    causes: dict[tuple[str, str], Cause] = {}
    for variant in tables.codes:
        alone, both = (bound_of(tables, variant, kind) for kind in (CEILING, BOTH))
        if alone is None or variant in arms:
            continue
        for name, question in tables.asked.items():
            known = right.get((alone, name))
            if right.get((variant, name), True) or known is None or not question.evidence:
                continue
            on_top = None if both is None else right.get((both, name))
            if on_top is None:
                on_top = not evidence.by_question.get((name, variant), frozenset()) <= _REACHED
            causes[variant, name] = "ignored" if not known else "missing" if on_top else "crowded out"
    return WhyFailed(metric, middle, causes)
