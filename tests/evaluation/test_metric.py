import pytest
from factories import make_answer, make_failed_trace, make_hit, make_passage, make_question, make_trace

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.metric import Tools
from rag_lab.evaluation.registry import build_metric
from rag_lab.records import StageRecord
from rag_lab.testing import MetricContract

MODEL_FREE = [
    "retrieval.ndcg@10",
    "citations.precision",
    "citations.recall",
    "citations.validity",
    "answer.exact_match",
    "answer.token_f1",
    "answer.abstention",
    "ragas.non_llm_context_precision",
    "ragas.non_llm_context_recall",
    "ragas.rouge_score",
    "ragas.string_presence",
]


def one(metric, trace):
    (score,) = evaluate([trace], [metric])
    return score


class TestMetrics(MetricContract):
    @pytest.fixture(autouse=True, params=MODEL_FREE)
    def _each(self, request):
        self.make = self.metric = lambda: build_metric(request.param, Tools())


def test_an_unanswerable_question_has_no_retrieval_score():
    score = one("retrieval.mrr@10", make_trace(make_question(answerable=False, evidence=())))
    assert (score.status, score.value) == ("not_applicable", None)
    assert "no evidence" in score.reason


def test_an_answer_that_was_not_asked_for_is_not_applicable():
    score = one("answer.token_f1", make_trace(answer=None))
    assert (score.status, score.reason) == ("not_applicable", "no answer was asked for")


def test_a_missing_reference_is_not_applicable():
    assert one("answer.token_f1", make_trace(make_question(answers=()))).status == "not_applicable"


def test_a_failure_upstream_fails_the_score_with_its_reason():
    score = one("retrieval.ndcg@10", make_failed_trace("retrieve", "index is gone"))
    assert (score.status, score.reason) == ("failed", "retrieve failed: index is gone")


def test_a_failure_downstream_leaves_the_ranking_its_score():
    trace = make_failed_trace("generate", ranked=(make_hit(),), passages=(make_passage(),))
    assert one("retrieval.ndcg@10", trace).value == 1
    assert one("ragas.non_llm_context_recall", trace).value == 1
    assert one("answer.token_f1", trace).status == "failed"


def test_retrieval_that_found_nothing_scores_zero_also_where_the_reader_then_failed():
    stages = (StageRecord("retrieve"), StageRecord("generate", "failed", "no context"))
    score = one("retrieval.ndcg@10", make_failed_trace("generate", stages=stages))
    assert (score.status, score.value) == ("scored", 0)


def test_an_unanswerable_question_is_not_applicable_even_where_retrieval_failed():
    question = make_question(answerable=False, evidence=())
    assert one("retrieval.ndcg@10", make_failed_trace("retrieve", question=question)).status == "not_applicable"


def test_an_empty_context_fails_where_one_was_assembled():
    assert one("ragas.non_llm_context_recall", make_trace(passages=())).status == "failed"
    assert one("ragas.non_llm_context_recall", make_trace(passages=(), stages=())).status == "not_applicable"


def test_the_repeat_is_on_the_score():
    assert one("answer.token_f1", make_trace(repeat=3, answer=make_answer())).repeat == 3
