"""What the questions alone rule out is said before a run, and the run says the same."""

from collections import Counter

import pytest
from doubles import HashEmbedder, ScriptedJudge, good_reply
from factories import TEXT, make_passage, make_question, make_trace

from rag_lab.errors import ConfigError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.ragas_table import SPECS
from rag_lab.evaluation.registry import CALLS, describe, expected_gaps
from rag_lab.evaluation.trace_measures import NOT_HERE
from rag_lab.models.truncation import estimated_tokens

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
    assert set(found) - set(foreseen) <= {"no citation quotes anything", NOT_HERE.reason}  # only an answer can tell


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
