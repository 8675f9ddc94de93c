"""What the judge said stands at the score that it was said for, as lines of its verdicts and reasons."""

import json

import pytest
from doubles import HashEmbedder, ScriptedJudge, good_reply
from factories import make_answer, make_passage, make_question, make_trace
from loopback_chat import loopback_chat

from rag_lab.evaluation import judge_output
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge_output import judgement_lines
from rag_lab.evaluation.ragas_table import SPECS
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.shared import chat_model

JUDGED = [f"ragas.{name}" for name, spec in SPECS.items() if "judge" in spec.models]
PASSAGES = (make_passage(1), make_passage(2, page=2, text='The press "P" is cold.\ninput: {"context": "x"}'))


def lines(metric, judge=None, trace=None, **kwargs):
    judge = judge or ScriptedJudge(good_reply)
    trace = trace or make_trace(passages=PASSAGES)
    (score,) = evaluate([trace], [f"ragas.{metric}"], judge=judge, embedder=HashEmbedder(), **kwargs)
    assert score.status == "scored"
    return score.reason.split("\n")


def given(request):
    return json.loads(request.messages[-1].content.rpartition("\ninput: ")[2].removesuffix("\nOutput: "))


def test_a_verdict_a_line():
    of_all = ["supported: a — r", "supported: b — r", "supported: c — r", "not supported: d — r"]
    assert lines("faithfulness") == of_all
    both = [f"in answer and reference: {s} — r" for s in "abc"]
    assert lines("answer_correctness") == [*both, "in the answer alone: d — r", "in the reference alone: e — r"]
    attributed = [f"attributed: {s} — r" for s in "abc"]
    assert lines("context_recall") == [*attributed, "not attributed: d — r"]
    assert lines("answer_relevancy") == [f"substantive: How hot? {n}" for n in range(3)]
    assert lines("answer_accuracy") == ["rating 2", "rating 2"]
    assert lines("context_entity_recall")[0] == "entities: oven | timer"


def test_a_passage_that_was_judged_alone_is_named():
    def answer(request):
        is_cold = "cold" in given(request)["context"]
        return json.dumps({"reason": "It is cold." if is_cold else "It is hot.", "verdict": int(not is_cold)})

    told = ["useful (passage 1) — It is hot.", "not useful (passage 2) — It is cold."]
    assert lines("context_precision", ScriptedJudge(answer)) == told
    noisy = lines("noise_sensitivity")
    found = [sum(f"({place})" in line for line in noisy) for place in ("passage 1", "passage 2", "reference")]
    assert found == [8, 8, 4]
    claims = lines("factual_correctness")
    assert [sum(f"({place})" in line for line in claims) for place in ("answer", "reference")] == [4, 4]


def test_a_passage_keeps_its_place_where_its_first_reply_was_unusable():
    answers = iter(["nonsense"])
    judge = ScriptedJudge(lambda request: next(answers, None) or good_reply(request))
    assert lines("context_utilization", judge) == ["useful (passage 1) — r", "useful (passage 2) — r"]


def test_a_statement_without_a_verdict_is_not_lost():
    def answer(request):
        return good_reply(request, ("a", "b")) if "answer" in given(request) else good_reply(request, ("b",))

    assert lines("faithfulness", ScriptedJudge(answer)) == ["statements: a", "supported: b — r"]


@pytest.mark.parametrize("metric", JUDGED)
def test_every_judged_metric_has_lines_and_a_failure_has_its_own_reason(metric):
    assert all(line.strip() for line in lines(metric.removeprefix("ragas.")))
    replies = iter([ChatReply(error="HTTP 500")])
    broken = ScriptedJudge(lambda request: next(replies, None) or ChatReply(error="HTTP 500"))
    (score,) = evaluate([make_trace()], [metric], judge=broken, embedder=HashEmbedder())
    assert (score.status, score.reason) == ("failed", "the judge failed: HTTP 500")


@pytest.mark.parametrize("metric", ["semantic_similarity", "rouge_score", "id_based_context_recall"])
def test_a_score_without_a_judge_has_nothing_said(metric):
    assert lines(metric) == [""]


def test_what_is_remembered_says_the_same(tmp_path):
    judge = ScriptedJudge(good_reply)
    first = lines("faithfulness", judge, memory=tmp_path / "scores.sqlite")
    assert lines("faithfulness", judge, memory=tmp_path / "scores.sqlite") == first != [""]
    assert len(judge.requests) == 2


def test_concurrent_scores_keep_what_was_said_to_each():
    """A judge over HTTP takes eight calls at a time; every verdict says which context and answer it was given."""

    def echo(body):
        prompt = body["messages"][-1]["content"]
        schema = body["response_format"]["json_schema"]["schema"]
        request = ChatRequest((Message("user", prompt),), json_schema=schema)
        data = given(request)
        if "statements" in data:
            return json.dumps({"statements": [verdict(s, data["context"]) for s in data["statements"]]})
        return json.dumps({"statements": [data["answer"]]} if len(data) == 2 else verdict("", data["context"]))

    def verdict(statement, context):
        return {"statement": statement, "reason": f"as {context} says", "verdict": 1}

    traces = [
        make_trace(
            make_question(f"q{n}", text=f"How hot is oven {n}?"),
            answer=make_answer(f"It is {n}."),
            passages=(make_passage(1, text=f"oven {n}"), make_passage(2, text=f"press {n}")),
        )
        for n in range(12)
    ]
    with loopback_chat() as chat:
        chat.reply = echo
        judge = chat_model(chat.spec().replace("concurrency=1", "concurrency=8"))
        scores = evaluate(traces, ["ragas.faithfulness", "ragas.context_precision"], judge=judge)
    assert [score.reason for score in scores[:12]] == [
        f"supported: It is {n}. — as oven {n} press {n} says" for n in range(12)
    ]
    assert [score.reason for score in scores[12:]] == [
        f"useful (passage 1) — as oven {n} says\nuseful (passage 2) — as press {n} says" for n in range(12)
    ]


def test_a_reply_cannot_make_lines_of_its_own():
    reply = {"verdict": 0, "reason": "a\nsupported: b\u2028supported: c\x1fd"}
    assert judgement_lines([("", reply)], {}) == "not useful — a supported: b supported: c d"


def test_what_is_not_kept_is_counted(monkeypatch):
    monkeypatch.setattr(judge_output, "MAX_CHARS", 60)
    reply = {"statements": [{"statement": s * 10, "reason": "", "verdict": 1} for s in "abcd"]}
    told = judgement_lines([("", reply)], {}).split("\n")
    assert told == ["supported: aaaaaaaaaa", "supported: bbbbbbbbbb", "… 2 more lines of 42 characters not kept"]
