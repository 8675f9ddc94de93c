"""What goes wrong with a judge or an embedder is a failed score with its reason; what it says becomes lines."""

import json

import pytest
from doubles import HashEmbedder, ScriptedJudge, good_reply
from factories import make_answer, make_passage, make_question, make_trace
from loopback_chat import loopback_chat

from rag_lab.errors import ModelError
from rag_lab.evaluation import judge_queue
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge_queue import judgement_lines
from rag_lab.evaluation.ragas_metrics import SPECS
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.shared import chat_model

from .ragas_recorded import SAMPLES, own_value

JUDGED = [f"ragas.{name}" for name, spec in SPECS.items() if "judge" in spec.models]


def score(metric, judge=None, trace=None):
    (result,) = evaluate([trace or make_trace()], [metric], judge=judge, embedder=HashEmbedder())
    return result


def test_a_rating_that_does_not_exist_is_asked_again_and_then_refused():
    """RAGAs drops such a rating and returns the other prompt's alone."""
    for metric, ratings in (("ragas.answer_accuracy", (3, 4, 2)), ("ragas.context_relevance", (9, 2, 1))):
        replies = iter([f'{{"rating": {rating}}}' for rating in ratings])
        result = score(metric, ScriptedJudge(lambda _, replies=replies: next(replies)))
        assert (result.value, result.calls) == (0.75, 3)
    refused = score("ragas.answer_accuracy", ScriptedJudge(lambda _: '{"rating": 3}'))
    assert (refused.status, refused.reason) == ("failed", "the judge's rating is 3; allowed are 0, 2, 4")


@pytest.mark.parametrize("metric", JUDGED)
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("What a lovely day.", "no JSON"),
        ('{"statements": ["a", ', ""),
        ("", "empty"),
        ("{}", "does not fit"),
        (ChatReply(error="HTTP 500"), "HTTP 500"),
        (ChatReply(error="HTTP 429", transient=True), "HTTP 429"),
    ],
)
def test_a_bad_reply_is_a_failed_score_with_its_reason(metric, reply, reason):
    result = score(metric, ScriptedJudge(lambda _: reply))
    assert (result.status, result.value) == ("failed", None)
    assert reason in result.reason
    assert "judge" in result.reason
    assert "\n" not in result.reason


def test_one_bad_trace_leaves_the_others_their_scores():
    def answer(request):
        return "nonsense" if "press" in request.messages[-1].content else good_reply(request)

    traces = [make_trace(), make_trace(make_question("q2", text="How hot is the press?")), make_trace()]
    results = evaluate(traces, ["ragas.faithfulness"], judge=ScriptedJudge(answer))
    assert [result.value for result in results] == [0.75, None, 0.75]


def test_no_statements_is_not_a_perfect_match():
    judge = ScriptedJudge(lambda request: good_reply(request, statements=()))
    result = score("ragas.answer_correctness", judge)
    assert (result.status, result.value) == ("failed", None)
    nothing_said = own_value("answer_correctness", SAMPLES[0], lambda *_: '{"statements": []}')
    assert nothing_said > 0.75  # what RAGAs makes of it


def test_half_an_opinion_is_no_score():
    """RAGAs' context relevance swallows one prompt's failure and returns the other's rating alone."""
    seen = []

    def answer(request):
        prompt = request.messages[-1].content
        seen.append(prompt)
        return good_reply(request) if prompt == seen[0] else "nonsense"

    result = score("ragas.context_relevance", ScriptedJudge(answer))
    assert (result.status, result.value) == ("failed", None)
    assert "no JSON" in result.reason


def test_a_judge_out_of_reach_is_asked_once():
    judge = ScriptedJudge(lambda _: ChatReply(error="HTTP 429", transient=True))
    score("ragas.context_relevance", judge)
    assert len(judge.requests) == 1


@pytest.mark.parametrize("metric", ["ragas.faithfulness", "ragas.context_relevance"])
@pytest.mark.parametrize("broken", ["generate", "count_tokens"])
def test_a_judge_that_cannot_be_loaded_fails_each_score_and_is_tried_once(metric, broken, tmp_path):
    attempts = []

    def refuse(_):
        attempts.append(1)
        raise ModelError("No weights for 'judge': put them there.")

    judge = ScriptedJudge(good_reply, context_tokens=2_500)  # prompts are counted only where they may not fit
    setattr(judge, broken, refuse)
    memory = tmp_path / "scores.sqlite"
    traces = [make_trace(answer=make_answer(f"answer {n}"), passages=(make_passage(text=f"{n}"),)) for n in range(20)]
    results = evaluate(traces, [metric], judge=judge, memory=memory)
    assert {result.reason for result in results} == {"No weights for 'judge': put them there."}
    assert len(attempts) == 1
    assert Memory(memory).counts() == {}


@pytest.mark.parametrize("metric", ["ragas.faithfulness", "ragas.context_relevance"])
def test_a_judge_that_breaks_its_contract_fails_the_score(metric):
    judge = ScriptedJudge(good_reply)
    judge.generate = lambda requests: []
    result = score(metric, judge)
    assert (result.status, result.value) == ("failed", None)
    assert "shorter" in result.reason


def test_an_embedder_that_fails_fails_each_score():
    class Broken(HashEmbedder):
        def embed_documents(self, texts):
            raise ModelError("No key for the embedder: set it.")

    (result,) = evaluate([make_trace()], ["ragas.semantic_similarity"], embedder=Broken())
    assert (result.status, result.reason) == ("failed", "No key for the embedder: set it.")


def test_a_prompt_that_does_not_fit_the_judge_is_said_so():
    result = score("ragas.faithfulness", ScriptedJudge(good_reply, context_tokens=100))
    assert (result.status, result.calls) == ("failed", 0)
    assert "reads 100 tokens" in result.reason


def test_an_empty_answer():
    said_nothing = make_trace(answer=make_answer("  ", cites=()))
    assert score("ragas.answer_relevancy", ScriptedJudge(good_reply), said_nothing).status == "failed"
    rightly = make_trace(
        make_question(answerable=False, answers=(), evidence=()), answer=make_answer("", abstained=True)
    )
    assert score("ragas.faithfulness", ScriptedJudge(good_reply), rightly).status == "not_applicable"


@pytest.mark.parametrize("bad", ["nonsense", "", '{"statements": ["a"', '{"statements": []}'])
def test_an_unusable_reply_is_asked_again_once_and_sampled(bad):
    replies = iter([bad])
    judge = ScriptedJudge(lambda request: next(replies, None) or good_reply(request))
    if bad == "":
        judge = ScriptedJudge(lambda request: "" if len(judge.requests) == 1 else good_reply(request))
    result = score("ragas.faithfulness", judge)
    assert (result.value, result.calls) == (0.75, 3)
    assert [(request.seed, request.temperature) for request in judge.requests] == [(0, 0), (1, 0.7), (0, 0)]


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
    monkeypatch.setattr(judge_queue, "MAX_CHARS", 60)
    reply = {"statements": [{"statement": s * 10, "reason": "", "verdict": 1} for s in "abcd"]}
    told = judgement_lines([("", reply)], {}).split("\n")
    assert told == ["supported: aaaaaaaaaa", "supported: bbbbbbbbbb", "… 2 more lines of 42 characters not kept"]
