"""What every module keeps to, whatever its kind; models (see `rag_lab.models.protocols`), metrics and designs."""

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rag_lab._kit.custom_code import CustomCode
from rag_lab._kit.registry import Kind, from_object, opened_files
from rag_lab.config import PipelineConfig
from rag_lab.evaluation.metric import Metric, Tools
from rag_lab.evaluation.registry import build_metric
from rag_lab.experiment.design import DESIGNS, expand
from rag_lab.models.custom_models import object_model
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.providers import CHAT_MODELS, CROSS_ENCODERS, EMBEDDERS
from rag_lab.records import StageRecord, Trace
from rag_lab.redaction import names_secret
from rag_lab.testing.doubles import QUESTIONS, HashEmbedder, sample_chat, sample_index, sample_question, sample_trace


class ModuleContract:
    """The rules of all modules. A subclass whose name begins with `Test` is run by pytest."""

    def make(self) -> Any:
        """Return the module: a new one each time, with the same parameters."""
        raise NotImplementedError("make() returns the module that is tested.")

    def built(self) -> Any:
        """Return it as the workbench uses it."""
        return self.make()

    def identity(self) -> Mapping[str, Any]:
        """Return under what its results are remembered."""
        return dict(self.built().identity())

    def test_its_constructor_only_stores(self) -> None:
        sample_index()  # which make() may use
        with opened_files() as opened:
            self.make()
        searched = {Path(entry).resolve() for entry in sys.path}  # which a first import may open to look for packages
        assert not opened - searched, "files are read on the first call"

    def test_its_identity_is_json_and_the_same_each_time(self) -> None:
        identity = dict(self.identity())
        assert json.loads(json.dumps(identity)) == identity
        assert dict(self.identity()) == identity

    def test_it_shows_no_secret(self) -> None:
        secrets = [value for name, value in os.environ.items() if names_secret(name) and len(value) >= 8]
        shown = f"{json.dumps(dict(self.identity()))}{self.make()!r}"
        assert not [value for value in secrets if value in shown]


TEXTS = ["The press runs at 140 bar.", "grease", "The oven's filter is changed every month.", "grease"]
_ROUNDING = 1e-5  # of a unit vector in float32: batches of another size add in another order
PAIRS = [
    ("how often is the filter of the oven changed", "the filter of the oven is changed monthly"),
    ("how often is the filter of the oven changed", "the press runs at 140 bar"),
    ("what pressure does the press need", "the press runs at 140 bar"),
    ("what pressure does the press need", ""),
]
_SCORE_ROUNDING = 1e-4  # of float32


def ask(text: str) -> ChatRequest:
    """Return a request for a short reply."""
    return ChatRequest((Message("system", "the press"), Message("user", text)), max_tokens=8)


REQUESTS = [ask(text) for text in ("grease", "how often is the filter changed", "what pressure", "who", "oven")]


class ModelContract(ModuleContract):
    """A model of a kind, one of LangChain's too."""

    kind: ClassVar[Kind]

    def built(self) -> Any:
        """Return it as the pipeline asks it."""
        return object_model(self.kind, self.make())


class ChatModelContract(ModelContract):
    """A chat model. `too_long` is a question longer than it can read, where there is one."""

    too_long = ""

    kind = CHAT_MODELS

    def test_one_reply_a_request_in_order_that_counts_tokens_and_seconds(self) -> None:
        together = [reply.text for reply in self.built().generate(REQUESTS)]
        assert together == [self.built().generate([request])[0].text for request in REQUESTS]
        assert [reply.text for reply in self.built().generate(REQUESTS[::-1])][::-1] == together
        assert len(set(together)) > 1
        assert list(self.built().generate([])) == []
        for reply in self.built().generate(REQUESTS[:2]):
            assert reply.error == ""
            assert min(reply.tokens_in, reply.tokens_out) > 0
            assert reply.seconds >= 0

    def test_a_request_that_cannot_be_answered_fails_alone(self) -> None:
        if not self.too_long:
            return
        replies = self.built().generate([REQUESTS[0], ask(self.too_long), REQUESTS[1]])
        assert [bool(reply.error) for reply in replies] == [False, True, False]
        assert replies[1].text == ""
        assert "\n" not in replies[1].error

    def test_tokens_are_counted_and_more_text_has_no_fewer(self) -> None:
        model = self.built()
        assert 0 < model.count_tokens("the press") <= model.count_tokens("the press runs at 140 bar")
        assert model.context_tokens > 0
        assert model.constrains_json in (True, False)


class EmbedderContract(ModelContract):
    """An embedding model."""

    kind = EMBEDDERS

    def test_rows_are_unit_vectors_in_order(self) -> None:
        for embed in (self.built().embed_documents, self.built().embed_queries):
            rows = embed(TEXTS)
            assert rows.shape[0] == len(TEXTS)
            assert rows.dtype == np.float32
            np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=_ROUNDING)
            np.testing.assert_allclose(rows, embed(TEXTS[::-1])[::-1], atol=_ROUNDING)
            np.testing.assert_allclose(rows[1], rows[3], atol=_ROUNDING)
            assert rows[0] @ rows[1] < 0.99
        empty = self.built().embed_documents([])
        assert (empty.ndim, empty.shape[0]) == (2, 0)


class PairScorerContract(ModelContract):
    """A cross-encoder, or another model that scores pairs of a question and a passage."""

    kind = CROSS_ENCODERS

    def test_one_finite_score_a_pair_in_order_whatever_shares_the_batch(self) -> None:
        together = self.built().score(PAIRS)
        alone = [self.built().score([pair])[0] for pair in PAIRS]
        assert len(together) == len(PAIRS)
        assert all(type(score) is float and math.isfinite(score) for score in together)
        for one, other, backwards in zip(together, alone, self.built().score(PAIRS[::-1])[::-1], strict=True):
            assert math.isclose(one, other, rel_tol=_SCORE_ROUNDING, abs_tol=_SCORE_ROUNDING)
            assert math.isclose(one, backwards, rel_tol=_SCORE_ROUNDING, abs_tol=_SCORE_ROUNDING)
        assert len(set(together[:3])) > 1
        assert list(self.built().score([])) == []


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
        assert traces == _traces()  # as they were

    def test_a_score_has_a_number_exactly_where_it_is_scored_and_a_reason_where_it_is_not(self) -> None:
        scores = self.built().score(_traces())
        assert not self.built().needs & {"evidence", "reference"} or scores[2].status == "not_applicable"
        for score in scores:
            assert (score.value is not None) == (score.status == "scored")
            assert score.value is None or math.isfinite(score.value)
            assert score.status == "scored" or score.reason


class DesignContract(ModuleContract):
    """A design: `(base, factors) -> list of {dotted key: value}`, the first of which is the baseline."""

    def factors(self) -> dict[str, Sequence[Any]]:
        """Return factors of which it can make variants; no value stands in one twice."""
        return {"query.hyde": ["none", "always"], "rerank.final_k": [5, 3, 8], "answer.thinking": [False, True]}

    def identity(self) -> Mapping[str, Any]:
        return CustomCode(from_object(self.make(), DESIGNS), "design").identity()

    def test_its_variants_can_run_and_are_the_same_again_and_nothing_else_is_changed(self) -> None:
        once, again = (expand(PipelineConfig(), self.factors(), self.make()) for _ in range(2))
        assert once == again
        assert once.baseline.changes == {}
        assert once.notices == ()  # as of a variant that is made twice
        base, factors = PipelineConfig().flat(), self.factors()
        given = deepcopy((base, factors))
        self.make()(base, factors)
        assert (base, factors) == given
