"""What goes wrong with a judge or an embedder is a failed score with its reason, never a number."""

import pytest
from doubles import HashEmbedder, ScriptedJudge, good_reply
from factories import make_answer, make_passage, make_question, make_trace

from rag_lab.errors import ModelError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.ragas_table import SPECS
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatReply

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
