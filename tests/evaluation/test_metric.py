import pytest
from factories import make_answer, make_evidence, make_failed_trace, make_hit, make_passage, make_question, make_trace

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.metric import Tools
from rag_lab.evaluation.registry import build_metric
from rag_lab.records import CLOSED_BOOK, NO_LABEL, OF_LABELS, StageRecord
from rag_lab.testing import HashEmbedder, MetricContract

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
        self.make = self.built = lambda: build_metric(request.param, Tools())

    def identity(self):
        return {}  # a quick metric of ours is computed each time


@pytest.mark.parametrize(
    ("metric", "trace", "reason"),
    [
        (
            "retrieval.mrr@10",
            make_trace(make_question(answerable=False, evidence=())),
            "the question has no evidence: the",
        ),
        ("answer.token_f1", make_trace(answer=None), "no answer was asked for"),
        ("answer.token_f1", make_trace(make_question(answers=())), "the question has no reference answer"),
    ],
)
def test_what_a_question_lacks_is_not_applicable(metric, trace, reason):
    score = one(metric, trace)
    assert (score.status, score.value) == ("not_applicable", None) and score.reason.startswith(reason)


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


CLOSED, UNLABELLED, OF_THE_LABELS = (StageRecord("context", reason=why) for why in (CLOSED_BOOK, NO_LABEL, OF_LABELS))
REFUSAL = make_answer("The documents do not say how hot the oven is.", cites=(), abstained=True)


@pytest.mark.parametrize("record", [CLOSED, UNLABELLED])
@pytest.mark.parametrize(
    "metric", ["ragas.non_llm_context_recall", "ragas.quoted_spans_alignment", "answer.abstention", "citations.recall"]
)
def test_a_context_that_is_empty_by_design_is_no_failure_and_no_merit(record, metric):
    score = one(metric, make_trace(passages=(), answer=REFUSAL, stages=(record,)))
    assert (score.status, score.value) == ("not_applicable", None)
    assert "by the design of the variant" in score.reason


def test_a_context_that_is_empty_as_nothing_fitted_is_a_failure():
    record = StageRecord("context", reason="3 of 3 passages did not fit 10 tokens")
    assert one("ragas.non_llm_context_recall", make_trace(passages=(), stages=(record,))).status == "failed"
    assert one("answer.abstention", make_trace(passages=(), answer=REFUSAL, stages=(record,))).value == 0


@pytest.mark.parametrize("metric", ["ragas.non_llm_context_recall", "ragas.id_based_context_precision"])
def test_a_context_that_is_made_of_the_labels_is_not_measured_by_them(metric):
    assert one(metric, make_trace()).value == 1
    score = one(metric, make_trace(stages=(OF_THE_LABELS,)))
    assert (score.status, score.reason) == ("not_applicable", "the context is made of the labels, by the design of the "
                                            "variant")  # fmt: skip


def test_nor_are_citations_of_which_none_can_be_wrong():
    elsewhere = (make_passage(1), make_passage(2, 7))
    for passages, status in (((make_passage(1),), "not_applicable"), (elsewhere, "scored")):
        trace = make_trace(passages=passages, stages=(OF_THE_LABELS,))
        assert {one(f"citations.{share}", trace).status for share in ("precision", "recall")} == {status}


@pytest.mark.parametrize("metric", ["rouge_score", "chrf_score", "non_llm_string_similarity", "semantic_similarity"])
def test_the_words_of_a_refusal_are_no_answer(metric):
    reference = ("The documents say that the oven is at 180 degrees.",)
    trace = make_trace(make_question(answers=reference), answer=REFUSAL)
    (score,) = evaluate([trace], [f"ragas.{metric}"], embedder=HashEmbedder())
    assert score.status == "not_applicable" and score.reason.startswith("the reader abstained")
    assert [one(f"answer.{measure}", trace).value for measure in ("token_f1", "exact_match")] == [0, 0]


@pytest.mark.parametrize(("page", "named"), [(None, "a file of several passages"), (4, "a page of several passages")])
def test_which_passage_a_label_without_words_means_is_not_guessed(page, named):
    question = make_question(evidence=(make_evidence(page, context=""),))
    score = one("ragas.non_llm_context_recall", make_trace(question))
    assert score.status == "not_applicable" and named in score.reason
