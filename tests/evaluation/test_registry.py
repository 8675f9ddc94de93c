import re
import subprocess
import sys
from collections import Counter

import pytest
from doubles import HashEmbedder, ScriptedJudge, good_reply
from factories import TEXT, make_passage, make_question, make_trace

from rag_lab.errors import ConfigError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.metric import Tools
from rag_lab.evaluation.ragas_metrics import SPECS
from rag_lab.evaluation.registry import (
    CALLS,
    build_metric,
    describe,
    expected_gaps,
    metric_names,
    parse_name,
    problems,
    split_names,
    with_judges,
)
from rag_lab.evaluation.retrieval import ASKED_ONCE
from rag_lab.evaluation.trace_measures import NOT_HERE
from rag_lab.models.truncation import estimated_tokens


def test_every_described_metric_can_be_built():
    for info in describe():
        name = info.name
        for placeholder, text in (("@k", "@10"), ("<n>", "800"), ("<stage>", "rerank"), ("<measure>", "RR")):
            name = name.replace(placeholder, text)
        metric = build_metric(name, Tools())
        assert (metric.name, metric.needs) == (name, info.needs)


def test_all_problems_are_named_at_once():
    names = [
        "retrieval.ndgc@10", "retrieval.ndcg", "retrieval.ndcg@0", "retrieval.ndcg@5000", "retrieval.ndcg@ten",
        "answer.token_f1@5", "ragas.faithfulness", "citations.recall", "citations.recall", "cost.seconds.",
    ]  # fmt: skip
    found = problems(names, has_judge=False)
    assert len(found) == 9
    parts = (
        "did you mean 'retrieval.ndcg@k'", "'retrieval.ndcg' needs a cut-off from 1 to 1000 and none is given",
        "impossible cut-off", "'answer.token_f1@5' takes no cut-off", "'ragas.faithfulness' needs a judge",
        "'citations.recall' is named 2 times",
    )  # fmt: skip
    assert [part for part in parts if part not in "\n".join(found)] == []
    assert problems(["retrieval.ndcg@10", "ragas.faithfulness", "cost.seconds.rerank"], has_judge=True) == []


def test_evaluate_refuses_with_every_problem():
    with pytest.raises(ConfigError, match="needs a judge.*needs an embedding model"):
        evaluate([], ["ragas.faithfulness", "ragas.semantic_similarity"])


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("nDGC@10", "Unknown measure of ir_measures 'nDGC'.* did you mean 'nDCG'?"),
        ("P", "write retrieval.P@10, for instance"),
        ("P@0", "impossible cut-off"),
        ("P@2.5", "write retrieval.P@10"),
        ("AP(rel='high')", "rel='high'"),
        ("AP(relevance=1)", "relevance"),
        ("AP(rel=1))", "must be in format"),
        ("nDCG@__import__", "must be"),
        ("RBP(p=0.8)", "nothing computes this measure with these parameters; give rel too"),
        ("ERR", "give cutoff too"),
        ("nDCG(judged_only=True, dcg='exp-log2')@5", "leave some out"),
        ("IPrec@5", "write retrieval.IPrec@0.5"),
        ("alpha_nDCG@10", "labels of a question's aspects"),
    ],
)
def test_a_measure_that_cannot_be_computed_is_said_before_anything_runs(measure, said):
    (found,) = problems([f"retrieval.{measure}"], has_judge=False)
    assert re.search(said, found)
    assert "\n" not in found


def test_a_measure_without_its_package_says_what_to_install():
    import ir_measures

    if ir_measures.cwl_eval.is_available():
        pytest.skip("the package is installed")
    (found,) = problems(["retrieval.RBP(p=0.8, rel=1)"], has_judge=False)
    assert "pip install ir-measures[cwl_eval]" in found


def test_commas_in_parentheses_belong_to_a_name():
    text = " retrieval.SetF(beta=2.0, rel=1),answer.words,, retrieval.mrr@5 "
    assert split_names(text) == ("retrieval.SetF(beta=2.0, rel=1)", "answer.words", "retrieval.mrr@5")


def test_the_cutoff_and_the_stage_are_arguments():
    assert parse_name("retrieval.ndcg@7").argument == "7"
    assert parse_name("cost.seconds.retrieve_hyde").argument == "retrieve_hyde"
    assert parse_name("retrieval.SetF(beta=2.0)").argument == "SetF(beta=2.0)"


def test_checking_names_loads_no_heavy_library():
    code = (
        "import sys; from rag_lab.evaluation.registry import describe, problems;"
        "describe(); problems(['ragas.faithfulness'], has_judge=True);"
        "print([m for m in ('ragas', 'torch', 'pandas', 'ir_measures', 'langchain_core') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_are_sorted_and_unique():
    assert sorted(info.name for info in describe()) == metric_names() == sorted(set(metric_names()))


QUESTIONS = [
    make_question("plain"),
    make_question("unreferenced", answers=()),
    make_question("unlabelled", evidence=()),
    make_question("unanswerable", answers=(), evidence=(), answerable=False),
    make_question("unanswered"),
]
ANSWERED = {"plain", "unreferenced", "unlabelled", "unanswerable"}
JUDGED = [f"ragas.{name}" for name, spec in SPECS.items() if "judge" in spec.models]


def test_each_reason_is_counted():
    assert [str(gap) for gap in expected_gaps(["citations.recall", "answer.words"], QUESTIONS, ANSWERED)] == [
        "Metric citations.recall is not applicable to 1 of 5 questions: the question has no evidence.",
        "Metric citations.recall is not applicable to 1 of 5 questions: the question has no evidence: "
        "the documents do not hold the answer.",
        "Metric citations.recall is not applicable to 1 of 5 questions: no answer was asked for.",
        "Metric answer.words is not applicable to 1 of 5 questions: no answer was asked for.",
    ]


def test_the_commonest_reason_comes_first():
    questions = [make_question(str(n), evidence=(), answerable=n == 0) for n in range(3)]
    assert [gap.n for gap in expected_gaps(["retrieval.mrr@5"], questions)] == [2, 1]


@pytest.mark.parametrize("metric", [info.name.replace("@k", "@5") for info in describe() if "<" not in info.name])
def test_what_was_foreseen_is_what_happens(metric):
    traces = [
        make_trace(question, **({} if question.question_id in ANSWERED else {"answer": None})) for question in QUESTIONS
    ]
    scores = evaluate(traces, [metric], judge=ScriptedJudge(good_reply), embedder=HashEmbedder())
    found = Counter(score.reason for score in scores if score.status == "not_applicable")
    foreseen = {gap.reason: gap.n for gap in expected_gaps([metric], QUESTIONS, ANSWERED)}
    assert foreseen.items() <= found.items()
    assert set(found) - set(foreseen) <= {
        "no citation quotes anything",
        NOT_HERE.reason,
        ASKED_ONCE.reason,
    }  # only traces can tell


def test_nothing_is_foreseen_where_every_question_has_all_and_an_unknown_metric_is_refused():
    assert expected_gaps(["ragas.faithfulness", "cost.seconds"], [make_question()]) == []
    with pytest.raises(ConfigError, match="Unknown metric"):
        expected_gaps(["ragas.faith"], QUESTIONS)


@pytest.mark.parametrize("metric", sorted({*JUDGED, *CALLS}))
def test_calls_and_prompts_are_those_that_are_made(metric):
    judge = ScriptedJudge(good_reply)
    trace = make_trace(passages=tuple(make_passage(number, text=TEXT) for number in (1, 2, 3)))
    (score,) = evaluate([trace], [metric], judge=judge, embedder=HashEmbedder())
    assert score.calls == len(judge.requests) == CALLS[metric].fixed + 3 * CALLS[metric].a_passage
    longest = max(estimated_tokens(request.messages[0].content) for request in judge.requests)
    texts = estimated_tokens(TEXT) * 3 + 40  # the passages; question, answer and reference
    assert 0.85 * CALLS[metric].prompt_tokens <= longest <= CALLS[metric].prompt_tokens + texts


def test_a_metric_may_name_a_judge_of_its_own():
    name = "ragas.faithfulness by ollama:qwen3:8b?base_url=http://127.0.0.1:9"
    parsed = parse_name(name)
    assert (parsed.name, parsed.info.name, parsed.is_custom) == (name, "ragas.faithfulness", False)
    assert parsed.judge == "ollama:qwen3:8b?base_url=http://127.0.0.1:9"
    assert problems([name], has_judge=False) == []
    for wrong in ("retrieval.mrr@10 by gemini:x", "ragas.faithfulness by "):
        (problem,) = problems([wrong], has_judge=True)
        assert "names a judge" in problem


def test_of_several_judges_the_others_score_the_judged_metrics_again():
    metrics = ("ragas.faithfulness", "retrieval.mrr@10", "ragas.context_precision")
    found, judge = with_judges(metrics, ["a:one", "b:two"])
    assert judge == "a:one"
    assert found == (*metrics, "ragas.faithfulness by b:two", "ragas.context_precision by b:two")
    assert with_judges(found, ["a:one", "b:two"]) == (found, "a:one")
    assert with_judges(metrics, "a:one") == (metrics, "a:one")
    assert with_judges(metrics, None) == (metrics, None)
