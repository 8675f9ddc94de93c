"""The contracts of a metric and of a design."""

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from rag_lab._kit.custom_code import CustomCode
from rag_lab._kit.registry import from_object
from rag_lab.config import PipelineConfig
from rag_lab.evaluation.metric import Metric, Tools
from rag_lab.evaluation.registry import build_metric
from rag_lab.experiment.design import DESIGNS, expand
from rag_lab.records import StageRecord, Trace
from rag_lab.testing.contracts.module import ModuleContract
from rag_lab.testing.doubles import HashEmbedder
from rag_lab.testing.sample_traces import QUESTIONS, sample_chat, sample_question, sample_trace


def _traces() -> list[Trace]:
    """Return one that went well, and one of each way in which a trace can lack something."""
    failed = (StageRecord("search_dense", "failed", "the index is gone"),)
    unanswerable = sample_question("Who?", answerable=False, answers=(), evidence=())
    return [
        sample_trace(QUESTIONS[2]),
        sample_trace(hits={}, candidates=(), ranked=(), passages=(), answer=None, stages=failed),
        replace(sample_trace(QUESTIONS[1]), question=unanswerable),
        sample_trace(answer=None, repeat=1),
        sample_trace(passages=(), answer=None),
        Trace(sample_question("Never asked?")),
    ]


class MetricContract(ModuleContract):
    """A metric: `(trace) -> float` or `(float, reason)`, or a whole `Metric`."""

    def built(self) -> Metric:
        """Return it as `evaluate` asks it, with a judge and an embedder where it wants them."""
        return build_metric(self.make(), Tools(sample_chat(), HashEmbedder()))

    def test_one_score_a_trace_in_order_and_the_same_again(self) -> None:
        metric, traces = self.built(), _traces()
        scores = metric.score(traces)
        assert [(s.question_id, s.repeat) for s in scores] == [(t.question.question_id, t.repeat) for t in traces]
        assert {score.metric for score in scores} == {metric.name}
        assert scores[0].status != "failed", scores[0].reason
        alone = [self.built().score([trace])[0] for trace in _traces()]
        assert [(s.value, s.status) for s in scores] == [(s.value, s.status) for s in alone]

    def test_a_score_has_a_number_exactly_where_it_is_scored_and_a_reason_where_it_is_not(self) -> None:
        scores = self.built().score(_traces())
        assert not self.built().needs & {"evidence", "reference"} or scores[2].status == "not_applicable"
        for score in scores:
            assert (score.value is not None) == (score.status == "scored")
            assert score.value is None or math.isfinite(score.value)
            assert score.status == "scored" or score.reason

    def test_it_does_not_change_the_traces(self) -> None:
        traces = _traces()
        self.built().score(traces)
        assert traces == _traces()


class DesignContract(ModuleContract):
    """A design: `(base, factors) -> list of {dotted key: value}`, the first of which is the baseline."""

    def factors(self) -> dict[str, Sequence[Any]]:
        """Return factors of which it can make variants; no value stands in one twice."""
        return {"query.hyde": ["none", "always"], "rerank.final_k": [5, 3, 8], "answer.thinking": [False, True]}

    def identity(self) -> Mapping[str, Any]:
        return CustomCode(from_object(self.make(), DESIGNS), "design").identity()

    def test_its_variants_can_run_and_are_the_same_again(self) -> None:
        once, again = (expand(PipelineConfig(), self.factors(), self.make()) for _ in range(2))
        assert once == again
        assert once.baseline.changes == {}
        assert once.notices == ()  # as of a variant that is made twice

    def test_it_does_not_change_the_base_or_the_factors(self) -> None:
        base, factors = PipelineConfig().flat(), self.factors()
        given = deepcopy((base, factors))
        self.make()(base, factors)
        assert (base, factors) == given
